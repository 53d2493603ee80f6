select has_more, removed_jobs, due_jobs, ended
from run_cancel_children(of_tenant_id => $1, of_run_id => $2, of_epoch => $3, is_cancelled => $4, at => $5, most => $6)
