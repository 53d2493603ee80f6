select format('alter role %I login', $1::text)
