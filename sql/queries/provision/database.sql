select pg_get_userbyid(datdba)::text as owner, pg_encoding_to_char(encoding)::text as encoding
from pg_database where datname = $1
