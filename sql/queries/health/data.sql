-- pg_settings hides the directory from roles that may not know it. A socket has no address.
select
  (select setting from pg_settings where name = 'data_directory') as directory,
  inet_server_addr() is null or inet_server_addr() = inet_client_addr() as is_local
