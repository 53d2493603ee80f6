select pg_get_userbyid(datdba)::text, pg_encoding_to_char(encoding)::text
from pg_database where datname = $1
