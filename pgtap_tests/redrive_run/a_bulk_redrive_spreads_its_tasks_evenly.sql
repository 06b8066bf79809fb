begin;
\ir ../helpers/common.psql
select plan(3);

select rdq.create_queue('q');

-- Ten dead letters of a handler of their own, redriven: when each is due, in milliseconds since the first,
-- in the order of their deaths.
create function pg_temp.due_times(name text, spread interval, per_second double precision) returns integer[]
language plpgsql
as $$
declare
  ids uuid[] := '{}';
begin
  for place in 1..10 loop
    ids := ids || rdq.submit('q', name, 'x', error => '{"class": "PERMANENT"}');
  end loop;
  perform rdq.redrive_where(queue => 'q', handler => name, spread => due_times.spread, per_second => due_times.per_second);
  return (
    select array_agg(round(extract(epoch from t.next_attempt_at - f.next_attempt_at) * 1000)::integer order by i.place)
    from unnest(ids) with ordinality i (id, place)
    join rdq.tasks t on t.task_id = i.id
    join rdq.tasks f on f.task_id = ids[1]
  );
end
$$;

-- The first is due now, which is some milliseconds after the redrive began.
create function pg_temp.is_even(have integer[], step integer, description text) returns text
language sql
return ok(
  (select bool_and(h.value between (h.place - 1) * step - 500 and (h.place - 1) * step) from unnest(have) with ordinality h (value, place)),
  description || ': ' || have::text);

select pg_temp.is_even(pg_temp.due_times('b', null, 2), 500, 'two a second');
select ok(max(d.value) < 500, 'no pace: all at once') from unnest(pg_temp.due_times('d', null, null)) d (value);
select ok(max(d.value) < 500, 'no spread: all at once') from unnest(pg_temp.due_times('e', '0', null)) d (value);

select * from finish();
rollback;
