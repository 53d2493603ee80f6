-- What a dry run does with calls of a tool that is an HTTP server. Of other tools it means nothing: the runs that they begin are dry.

alter table tools
  -- Tools of before this are called, as they were.
  add column dry_run text not null default 'call' constraint tools_dry_run_check check (dry_run in ('call', 'simulate'));

-- But not those that ask a reviewer: in a dry run nobody is asked, so they were not called.
update tools set dry_run = 'simulate' where approval is not null;

-- An older program that still runs does not say.
alter table tools alter column dry_run set default 'simulate';
