select approval_assign_named(of_tenant_id => $1, of_approval_id => $2, named => $3, named_id => $4, named_email_key => $5,
  needs_role => $6, at => $7)
