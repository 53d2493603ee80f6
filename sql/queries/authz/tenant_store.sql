select store_id, model_id, model_version, model_digest from authz_stores where tenant_id = $1
