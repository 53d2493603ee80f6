-- What the role makes there, as a restore does, then belongs to the other.
select format('alter role %I in database %I set role to %L', $1::text, $2::text, $3::text)
