-- Not one that somebody else has.
with given as (
  update users
  set email = $3, email_key = $4
  where tenant_id = $1 and user_id = $2 and email is null and kind = 'person'
    and not exists (select from users other where other.tenant_id = $1 and other.email_key = $4)
  returning user_id
)
select exists (select from given) or email is not null as has_one
from users
where tenant_id = $1 and user_id = $2
