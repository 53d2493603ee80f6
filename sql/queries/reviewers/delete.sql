delete from reviewers
where tenant_id = $1 and user_id = $2 and role = $3
