select approval_assign_named(of_tenant_id => $1, of_approval_id => $2, named_id => $3, named_email_key => $4,
  needs_role => $5, at => $6)
