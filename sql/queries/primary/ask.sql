-- A primary's timeline, as its newest WAL file is named; null on a standby. The checkpoint's timeline is older than that
-- until the first checkpoint after a promotion ends.
select system_identifier as system,
       case when not pg_is_in_recovery()
            then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
       end as timeline
from pg_control_system()
