-- Whom an approval is assigned to once its time to be escalated has come, as its definition names the person: by id or email.

alter table approvals add column escalate_assignee text;
