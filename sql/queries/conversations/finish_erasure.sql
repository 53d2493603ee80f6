with said as (
  delete from conversation_messages where tenant_id = $1 and conversation_id = $2
)
update conversations set erased_at = $3 where tenant_id = $1 and conversation_id = $2
