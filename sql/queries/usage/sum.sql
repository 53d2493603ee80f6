select * from usage_sum(of_tenant_id => $1, of_project_id => $2, reader_id => $3, low => $4, high => $5, since => $6, until => $7,
  by_day => $8, by_project => $9, by_agent => $10, by_model => $11, of_agent_id => $12, most => $13)
