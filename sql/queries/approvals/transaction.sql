-- A transaction later than all that have begun to write.
select pg_current_xact_id()::text::bigint as transaction
