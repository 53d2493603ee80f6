select has_more, ended
from run_cancel_batch(of_tenant_id => $1, of_run_id => $2, of_epoch => $3, is_cancelled => $4, at => $5, most => $6)
