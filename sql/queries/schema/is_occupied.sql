select to_regclass('run_event_position') is not null
