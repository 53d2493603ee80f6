-- The identity provider that opened a session, and the email by which it knows the person.
select s.identity_provider_id, i.email_then
from sessions s
join identities i
  on i.tenant_id = s.tenant_id and i.identity_provider_id = s.identity_provider_id and i.user_id = s.user_id
where s.tenant_id = $1 and s.session_id = $2
