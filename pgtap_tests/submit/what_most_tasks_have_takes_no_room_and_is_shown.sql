begin;
\ir ../helpers/common.psql
select plan(11);

select rdq.create_queue('q');
create temporary table given (id uuid, content_type text, headers jsonb, stored text);
insert into given values
  (rdq.submit('q', 'h', 'x'), 'text/plain; charset=utf-8', '{}', null),
  (rdq.submit('q', 'h', '{}'::json, headers => '{}'), 'application/json', '{}', ''),
  (rdq.submit('q', 'h', '\x00'::bytea, task_id => rdq.uuid_v7()), 'application/octet-stream', '{}', 'application/octet-stream'),
  (rdq.submit('q', 'h', '\x00'::bytea, task_id => rdq.uuid_v7(), content_type => 'application/json'), 'application/json', '{}', ''),
  (rdq.submit('q', 'h', 'x', headers => '{"a": "b"}', content_type => 'text/plain'), 'text/plain', '{"a": "b"}', 'text/plain'),
  ((select rdq.submit_many('q', '[{"handler": "h", "payload": "x"}]')), 'text/plain; charset=utf-8', '{}', null);

select pg_temp.rows_are(
  $$ select t.content_type, t.headers from given g join rdq.task t on t.id = g.id order by g.id $$,
  $$ select g.stored, nullif(g.headers, '{}') from given g order by g.id $$,
  'what most have is not stored');
select pg_temp.rows_are(
  $$ select e ->> 'content_type', e -> 'headers' from given g cross join rdq.envelope(g.id) e order by g.id $$,
  $$ select g.content_type, g.headers from given g order by g.id $$,
  'the envelope has it');
select pg_temp.rows_are(
  $$ select c.content_type, c.headers from rdq.claim('{q}', 'tester', 10) c order by c.task_id $$,
  $$ select g.content_type, g.headers from given g order by g.id $$,
  'a worker gets it');

select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as id \gset
create function pg_temp.edited(id uuid, content_type text, headers jsonb, out before jsonb, out after jsonb)
language plpgsql
as $$
begin
  perform rdq.redrive(id, content_type => content_type, headers => headers);
  select a.before, a.after into before, after from rdq.audit a order by a.id desc limit 1;
  perform rdq.cancel(id);
end
$$;
select unnest(array[
  is(e.before, '{"content_type": "text/plain; charset=utf-8", "headers": {}}', 'an edit is audited with what was shown'),
  is(e.after, '{"content_type": "application/json", "headers": {"a": "b"}}', 'and what is')
])
from pg_temp.edited(:'id', 'application/json', '{"a": "b"}') e;
select unnest(array[
  is(e.before, '{"content_type": "application/json", "headers": {"a": "b"}}', 'also back'),
  is(e.after, '{"content_type": "text/plain; charset=utf-8", "headers": {}}', 'to nothing special')
])
from pg_temp.edited(:'id', 'text/plain; charset=utf-8', '{}') e;
select is(t.content_type || coalesce(t.headers, '{}')::text, null, 'which takes no room again') from rdq.task t where t.id = :'id';
select is(to_jsonb(e), '{"before": null, "after": null}', 'an edit to what it was is none')
from pg_temp.edited(:'id', 'text/plain; charset=utf-8', '{}') e;

select throws_ok(
  format($$ select rdq.redrive(%L, content_type => '') $$, :'id'), 'RD002', null, 'nobody can give an empty type to an edit');
select throws_ok($$ select rdq.submit('q', 'h', 'x', content_type => '') $$, 'RD002', null, 'nor to a submit');

select * from finish();
rollback;
