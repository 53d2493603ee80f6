select step, kind, name, path, format, status, attempt, failures, request, result, started_at, completed_at
from run_steps where tenant_id = $1 and run_id = $2 order by step desc limit 1
