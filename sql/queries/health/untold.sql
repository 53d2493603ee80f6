select count(*) from (select from authz_objects where applied < desired limit $1) untold
