-- Marks a run that this transaction has claimed as asked to end, since its root was.
select became from run_cancel_one(of_tenant_id => $1, of_run_id => $2, at => $3, ends => false)
