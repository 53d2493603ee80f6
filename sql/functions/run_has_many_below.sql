-- Whether more than `most` runs below a run are under way. Locks nothing, and reads no more of them than that.
create function run_has_many_below(of_tenant_id uuid, of_run_id uuid, most integer) returns boolean
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
  level uuid[] := array[of_run_id];
  counted integer := 0;
begin
  loop
    level := array(
      select c.child_run_id from run_children c
      where c.tenant_id = of_tenant_id and c.parent_run_id = any (level) and c.state = 'started' and not c.seen
      limit most - counted + 1
    );
    counted := counted + cardinality(level);
    exit when cardinality(level) = 0 or counted > most;
  end loop;
  return counted > most;
end
$$;
