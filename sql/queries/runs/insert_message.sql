-- The user's message of a turn that this transaction has inserted.
insert into conversation_messages (tenant_id, conversation_id, position, role, content, run_id, created_at)
select $1, r.conversation_id, $3, 'user', $4, $2, $5 from runs r where r.tenant_id = $1 and r.run_id = $2
