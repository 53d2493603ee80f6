select became, of_run_id
from approval_decide(of_tenant_id => $1, of_approval_id => $2, to_status => $3, by_user_id => $4, by_token_id => $5,
  needs_role => $6, said => $7, arguments_given => $8, answer_given => $9)
