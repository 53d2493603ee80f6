select * from run_rows
where tenant_id = $1 and conversation_id = $4
  and ($2::uuid is null or project_id = $2)
  and ($3::uuid is null or agent_id = $3)
  and ($5::text is null or status = $5)
  and ($6::text is null or origin = $6)
  and ($9::text is null or flow_id = $9)
  and ($10::text is null or waiting_for = $10)
  and ($11::json is null or labels::jsonb @> $11::jsonb)
  and ($7::uuid is null or run_id {{>|<}} $7)
order by run_id {{asc|desc}} limit $8
