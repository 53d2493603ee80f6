select pg_has_role($1::text::name, $2::text::name, 'member')
