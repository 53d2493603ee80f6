select format('revoke all on database %I from public', $1::text)
