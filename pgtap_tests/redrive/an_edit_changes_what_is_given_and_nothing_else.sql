begin;
\ir ../helpers/common.psql
select plan(14);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'was', headers => '{"a": "1", "b": "2"}', content_type => 'application/x-order',
  error => '{"class": "PERMANENT"}') as id \gset

create function pg_temp.kept(id uuid) returns text
language sql
begin atomic
  select concat_ws(' ', convert_from(t.payload, 'UTF8'), t.content_type, t.headers) from rdq._task(kept.id) t;
end;

select rdq.redrive(:'id');
select is(pg_temp.kept(:'id'), 'was application/x-order {"a": "1", "b": "2"}', 'nothing is given');
select rdq.cancel(:'id');
select rdq.redrive(:'id', 'text');
select is(pg_temp.kept(:'id'), 'text application/x-order {"a": "1", "b": "2"}', 'a payload');
select rdq.cancel(:'id');
select rdq.redrive(:'id', '{}'::json);
select is(pg_temp.kept(:'id'), '{} application/x-order {"a": "1", "b": "2"}', 'json does not change the content type');
select rdq.cancel(:'id');
select rdq.redrive(:'id', '[]'::jsonb);
select is(pg_temp.kept(:'id'), '[] application/x-order {"a": "1", "b": "2"}', 'nor does jsonb');
select rdq.cancel(:'id');
select rdq.redrive(:'id', 'bytes'::bytea);
select is(pg_temp.kept(:'id'), 'bytes application/x-order {"a": "1", "b": "2"}', 'nor do bytes');
select rdq.cancel(:'id');
select rdq.redrive(:'id', content_type => 'text/csv');
select is(pg_temp.kept(:'id'), 'bytes text/csv {"a": "1", "b": "2"}', 'the content type alone');
select rdq.cancel(:'id');
select rdq.redrive(:'id', headers => '{"c": "3"}');
select is(pg_temp.kept(:'id'), 'bytes text/csv {"c": "3"}', 'the headers, as a whole');
select rdq.cancel(:'id');
select rdq.redrive(:'id', headers => '{}');
select is(pg_temp.kept(:'id'), 'bytes text/csv {}', 'no headers');

-- Every overload takes all of them.
create temporary table overload (payload text, kept text);
insert into overload values
  ('''1''::text', '1'), ('''1''::json', '1'), ('''1''::jsonb', '1'), ('''\x31''::bytea', '1');
create function pg_temp.edited(id uuid, payload text) returns text
language plpgsql
as $$
begin
  perform rdq.cancel(id);
  execute format(
    'select rdq.redrive(%L, %s, content_type => ''text/x'', headers => ''{"d": "4"}'', reason => ''r'')', id, payload);
  return pg_temp.kept(id);
end
$$;
select is(pg_temp.edited(:'id', o.payload), o.kept || ' text/x {"d": "4"}', 'all at once: ' || o.payload) from overload o;

select unnest(array[
  is(c.payload || ' ' || c.content_type || ' ' || c.headers, '1 text/x {"d": "4"}', 'a worker gets what was edited'),
  is(c.attempt_count, 1, 'with a fresh budget')
])
from (
  select convert_from(c.payload, 'UTF8') as payload, c.content_type, c.headers, c.attempt_count
  from rdq.claim(array['q'], 'tester') c
) c;

select * from finish();
rollback;
