select step, attempt, ordinal, point, call, name, evaluator, origin, policy_version, verdict, code, reason, on_error,
  duration_us, encode(digest, 'hex') as digest, created_at
from run_checks
where tenant_id = $1 and run_id = $2
  and ($3::integer is null or (step, attempt, ordinal) {{>|<}} ($3, $4::integer, $5::integer))
order by step {{asc|desc}}, attempt {{asc|desc}}, ordinal {{asc|desc}}
limit $6
