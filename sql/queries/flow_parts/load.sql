select step, kind, name, path, format, status, attempt, failures, request, result, started_at, completed_at,
  state_format, state_frames, state_data, state_context, state_tasks, state_slots,
  parent_format, parent_frames, parent_data, parent_context, parent_tasks, parent_slots,
  named_tools, branch, own_run_id, own_started_at, own_input, levels
from flow_load(of_tenant_id => $1, of_run_id => $2, has_begun => $3, tool_names => $4, tool_ids => $5)
