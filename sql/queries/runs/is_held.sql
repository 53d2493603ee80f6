select exists (select from run_hold) as is_held
