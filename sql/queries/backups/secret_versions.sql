select count(*) from secret_versions
