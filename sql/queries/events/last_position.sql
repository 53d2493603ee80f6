select case when is_called then last_value else 0 end as position from run_event_position
