select format('grant %I to %I', $1::text, $2::text)
