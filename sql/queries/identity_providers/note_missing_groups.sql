-- Not at every sign-in: what is known to the minute is not written again.
update identity_providers
set groups_absent_at = case when $3 then groups_absent_at else $4 end,
  groups_left_out_at = case when $3 then $4 else groups_left_out_at end
where tenant_id = $1 and identity_provider_id = $2
  and (case when $3 then groups_left_out_at else groups_absent_at end
    between $4::timestamptz - interval '1 minute' and $4) is not true
