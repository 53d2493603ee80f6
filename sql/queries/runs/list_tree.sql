-- The runs below the root $18. The condition on parent_run_id is that of the index.
select * from run_rows
where tenant_id = $1 and root_run_id = $18 and parent_run_id is not null
  and ($19::uuid is null or parent_run_id = $19)
  and ($2::uuid is null or project_id = $2)
  and ($3::uuid is null or agent_id = $3)
  and ($4::uuid is null or conversation_id = $4)
  and ($5::text is null or status = $5)
  and ($6::text is null or origin = $6)
  and ($9::text is null or flow_id = $9)
  and ($10::text is null or waiting_for = $10)
  and ($17::json is null or labels::jsonb @> $17::jsonb)
  and ($12::text is null or via = $12)
  and ($13::boolean is null or dry_run = $13)
  and ($14::timestamptz is null or created_at >= $14)
  and ($15::timestamptz is null or created_at < $15)
  and ($16::boolean is null or parent_run_id is null)
  and run_id > $7 and run_id < $11
order by run_id {{asc|desc}} limit $8
