select tenant_id, object from authz_objects
where applied < desired and (tenant_id, object) > ($1, $2)
order by tenant_id, object
limit $3
