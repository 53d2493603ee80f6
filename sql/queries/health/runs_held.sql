select exists (select from run_hold)
