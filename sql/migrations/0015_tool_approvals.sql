-- Tools whose calls a reviewer approves before they are made.

alter table tools
  -- {"title", "requiredRole", "expiresAfter", "escalation", "onReject"}; null: its calls ask nobody.
  add column approval json;

alter table approvals
  -- Of a tool call: the tool.
  add column tool_id uuid;
