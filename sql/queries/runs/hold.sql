insert into run_hold (since) values ($1) on conflict do nothing
