-- Takes a conversation with the agent $4 for a turn that a flow begins, with a place for its message. No row while another turn
-- is under way there, and where it was erased or is with another agent.
update conversations c set active_run_id = $3, last_position = c.last_position + 1
where c.tenant_id = $1 and c.conversation_id = $2 and c.agent_id = $4 and c.active_run_id is null
  and c.erasure_requested_at is null
returning c.last_position as position, c.version
