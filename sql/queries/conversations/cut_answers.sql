-- Of these conversations, those whose newest message is an answer that was cut at its maximum length: the last event of its run says
-- so, or the one before it, where a cancel came too late.
select c.conversation_id
from conversations c
cross join lateral (
  select m.run_id from conversation_messages m
  where m.tenant_id = $1 and m.conversation_id = c.conversation_id and m.position = c.last_position and m.role = 'assistant'
  limit 1) answer
cross join lateral (
  select e.kind, e.data from run_events e where e.tenant_id = $1 and e.run_id = answer.run_id order by e.seq desc limit 2) event
where c.tenant_id = $1 and c.conversation_id = any ($2::uuid[])
  and event.kind = 'run.completed' and event.data ->> 'answerCut' = 'true'
