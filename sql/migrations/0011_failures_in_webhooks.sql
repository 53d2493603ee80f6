-- A run that failed before 0003 does not name the event that told webhooks why. It does from here on, so that erasing finds it.
update run_payloads p set webhook_event_id = e.event_id
from webhook_events e, runs r
where e.type = 'run.finished' and p.tenant_id = e.tenant_id and p.run_id = e.run_id and p.webhook_event_id is null
  and r.tenant_id = e.tenant_id and r.run_id = e.run_id and r.failure_message is not null;
-- Where the run has been erased, its event is erased now.
update webhook_events e set body = jsonb_set(e.body::jsonb, '{data,run,failureMessage}', '"Erased."')::text
from runs r
where e.type = 'run.finished' and r.tenant_id = e.tenant_id and r.run_id = e.run_id
  and r.payload_erased_at is not null and r.failure_message is not null
  and e.body::jsonb #>> '{data,run,failureMessage}' <> 'Erased.';
