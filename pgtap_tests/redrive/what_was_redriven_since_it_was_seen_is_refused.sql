begin;
\ir ../helpers/common.psql
select plan(12);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'was', error => '{"class": "PERMANENT"}') as id \gset

select is(r.redrive_count, 1, 'what was seen is what there is')
from rdq.redrive(:'id', 'first', expected_redrive_count => 0) r;
select rdq.cancel(:'id');
select d.redrive_count as seen from rdq.dead_letters d where d.task_id = :'id' \gset

create temporary table overload (payload text);
insert into overload values ('''x''::text'), ('''1''::json'), ('''1''::jsonb'), ('''\x31''::bytea');
create function pg_temp.stale(id uuid, payload text)
returns table (code text, message text, hint text)
language sql
begin atomic
  select e.*
  from pg_temp.error_of(format(
    'select rdq.redrive(%L, %s, content_type => ''text/x'', headers => ''{"a": "1"}'', expected_redrive_count => 0)',
    id, payload)) e;
end;

select pg_temp.stored() as before \gset
select is(s.code, 'RD004', 'it was redriven since, and is dead again: ' || o.payload)
from overload o
cross join pg_temp.stale(:'id', o.payload) s;
select alike(s.message, '%DEAD again; nothing was changed', 'the message says so')
from pg_temp.stale(:'id', 'null::bytea') s;
select alike(s.hint, '%rdq.history%', 'the hint names where to look') from pg_temp.stale(:'id', 'null::bytea') s;
select is(pg_temp.stored(), :'before', 'nothing changed');

select is(r.redrive_count, 2, 'whoever has seen the new failure may go on')
from rdq.redrive(:'id', 'second', expected_redrive_count => :seen) r;
select throws_ok(format('select rdq.redrive(%L, expected_redrive_count => 2)', :'id'), 'RD004', null,
  'of one that is not dead there is nothing to expect');
select rdq.cancel(:'id');
select lives_ok(format('select rdq.redrive(%L, expected_redrive_count => null)', :'id'), 'null expects nothing');
select is(convert_from(t.payload, 'UTF8'), 'second', 'only what was not refused is kept') from rdq.task t where t.id = :'id';

select * from finish();
rollback;
