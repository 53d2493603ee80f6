-- Lists of approvals by how they stand and by project, however many are closed.
create index approvals_status on approvals (tenant_id, status, approval_id);
create index approvals_project on approvals (tenant_id, project_id, approval_id);
