select max(version_id) from goose_db_version where is_applied
