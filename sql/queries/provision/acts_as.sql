select exists (
  select from pg_db_role_setting s
  join pg_database d on d.oid = s.setdatabase
  join pg_roles r on r.oid = s.setrole
  where r.rolname = $1 and d.datname = $2 and 'role=' || $3::text = any(s.setconfig)
)
