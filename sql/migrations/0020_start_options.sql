-- How a run was started, beside what it was given: of a dry run, what steps answer that it does not perform. Runs below it go by
-- it too. Null without any.
alter table run_payloads add column options json;
