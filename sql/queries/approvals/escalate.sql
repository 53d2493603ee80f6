select approval_escalate(of_tenant_id => $1, of_approval_id => $2, new_approval_id => $3, to_role => $4, to_user_id => $5,
  by_user_id => $6, by_token_id => $7, said => $8, at => $9)
