-- Since when nothing new is made in it and lists leave it out; null: it is not archived.
alter table projects add column archived_at timestamptz;
alter table agents add column archived_at timestamptz;
