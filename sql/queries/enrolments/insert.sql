insert into enrolments (
  tenant_id, enrolment_id, user_id, digest, created_by, created_with, created_at, expires_at,
  key_role, key_capabilities, key_project_id, key_expires_at
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
