begin;
select plan(4);

-- Compared as values: a day is 24 hours.
create function pg_temp.settings(queue text) returns rdq.queues
language plpgsql
as $$
declare
  settings rdq.queues;
begin
  select q.* into settings from rdq.queues q where q.queue = $1;
  settings.queue := null;
  settings.created_at := null;
  return settings;
end
$$;

select rdq.create_queue('fresh');
select rdq.create_queue('q', '{
  "max_attempts": 2, "ambiguous_attempts": 1, "vanish_limit": 9, "max_releases": 0, "backoff_base": 1,
  "backoff_factor": 3, "backoff_cap": 2, "ladder": [1, 2], "jitter": 0, "lease": 5, "handler_timeout": 4,
  "give_up_after": 100, "error_rules": [{"match": "*", "class": "PERMANENT"}], "keep_succeeded": "forever",
  "keep_dead": 1, "max_payload_bytes": 10, "notify": false
}');

select is(
  (select count(*)
   from rdq.queues q
   cross join jsonb_each(to_jsonb(q)) changed
   join (select f.* from rdq.queues q cross join jsonb_each(to_jsonb(q)) f where q.queue = 'fresh') f using (key)
   where q.queue = 'q' and changed.value <> f.value and changed.key not in ('queue', 'created_at')),
  17::bigint,
  'every setting was changed');

select rdq.alter_queue('q', (
  select jsonb_object_agg(k.key, null)
  from rdq.queues q
  cross join jsonb_object_keys(to_jsonb(q) - '{queue,created_at,paused_at,pause_reason}'::text[]) k (key)
  where q.queue = 'q'
));

select is(pg_temp.settings('q'), pg_temp.settings('fresh'), 'null puts each back');

select rdq.create_queue('nulls', '{"max_attempts": null, "keep_dead": null, "ladder": null, "notify": null}');
select is(pg_temp.settings('nulls'), pg_temp.settings('fresh'), 'null is the default in create_queue too');

select rdq.alter_queue('q', '{"keep_succeeded": "forever"}');
select rdq.alter_queue('q', '{"keep_succeeded": null}');
select is(q.keep_succeeded, interval '1 day', 'for ever, put back, is a day') from rdq.queues q where q.queue = 'q';

select * from finish();
rollback;
