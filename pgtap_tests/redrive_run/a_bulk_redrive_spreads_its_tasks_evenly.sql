begin;
\ir ../helpers/common.psql
select plan(12);

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

select pg_temp.is_even(pg_temp.due_times('a', '10 minutes', null), 60000, 'over ten minutes one a minute, the oldest first');
select pg_temp.is_even(pg_temp.due_times('b', null, 2), 500, 'two a second');
select pg_temp.is_even(pg_temp.due_times('c', null, 0.1), 10000, 'one in ten seconds');
select ok(max(d.value) < 500, 'no pace: all at once') from unnest(pg_temp.due_times('d', null, null)) d (value);
select ok(max(d.value) < 500, 'no spread: all at once') from unnest(pg_temp.due_times('e', '0', null)) d (value);

select is(e.code, 'RD002', format('must not be: %s', s.given))
from (values
  ($$ spread => '-1 second' $$), ($$ spread => '2 years' $$), ($$ per_second => 0 $$), ($$ per_second => -1 $$),
  ($$ per_second => 'NaN' $$), ($$ per_second => 'infinity' $$), ($$ spread => '1 hour', per_second => 1 $$)
) s (given)
cross join pg_temp.error_of(format('select * from rdq.redrive_where(queue => %L, %s)', 'q', s.given)) e;

select * from finish();
rollback;
