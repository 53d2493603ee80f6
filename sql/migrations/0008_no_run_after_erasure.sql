-- A program that knows nothing of erasing starts no run in a conversation that is to be erased. Not validated: that would
-- read every row, and such a run may be under way.
alter table conversations add constraint conversations_no_run_after_erasure
  check (erasure_requested_at is null or active_run_id is null) not valid;
