delete from run_hold
