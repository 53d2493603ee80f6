select became
from job_end(p_ids => array[$1::bigint], p_leases => array[$2::bigint], p_kinds => '{snooze}', p_delays_ms => array[$3::bigint],
  p_reasons => array[null::text])
