-- The server quotes the name; a role cannot be a parameter of the statement itself.
select format('create role %I login', $1::text)
