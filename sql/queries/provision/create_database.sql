-- template0: only that one takes an encoding and a locale of its own.
select format(
  'create database %I owner %I encoding %L locale %L template template0',
  $1::text, $2::text, 'UTF8', $3::text
)
