begin;
\ir ../helpers/common.psql
select plan(24);

select rdq.create_queue('q');
create function pg_temp.write_old(age interval, number integer) returns void
language sql
begin atomic
  insert into rdq.audit (at, actor, action, affected)
  select now() - age - n * interval '1 second', 'nobody', 'old', 1 from generate_series(1, number) n;
end;
select pg_temp.write_old('2 years', 5);
select pg_temp.write_old('30 days', 3);

create function pg_temp.left_of(action text) returns bigint
language sql
begin atomic
  select count(*) from rdq.audit a where a.action = left_of.action;
end;

set local rdq.actor = 'ada';
select is(rdq.purge_audit('3 years', 'nothing'), 0::bigint, 'nothing is that old');
select is(pg_temp.left_of('purge_audit'), 0::bigint, 'of which the audit says nothing');
select is(rdq.purge_audit(older_than => '1 year', reason => 'as the law says', max_rows => 2), 2::bigint, 'at most max_rows');
select results_eq(
  $$ select extract(epoch from now() - at)::bigint - 2 * 365.25 * 86400 from rdq.audit where action = 'old' and at < now() - interval '1 year' order by at $$,
  $$ select extract(epoch from now() - (now() - interval '2 years')) - 2 * 365.25 * 86400 + n from unnest(array[3, 2, 1]) n $$,
  'the oldest first');
select is(rdq.purge_audit('1 year'), 3::bigint, 'the rest');
select is(rdq.purge_audit('1 year'), 0::bigint, 'until there is none');
select is(pg_temp.left_of('old'), 3::bigint, 'what is younger stays');
select results_eq(
  $$ select actor, queue, affected, reason, filter from rdq.audit where action = 'purge_audit' order by id $$,
  $$
    values
      ('ada', null::text, 2::bigint, 'as the law says', '{"older_than": "1 year"}'::jsonb),
      ('ada', null, 3, null, '{"older_than": "1 year"}')
  $$,
  'each is a row of the audit');
select is(
  array[((a.before ->> 'last_id')::bigint > (a.before ->> 'first_id')::bigint)::text,
    extract(epoch from (a.before ->> 'last_at')::timestamptz - (a.before ->> 'first_at')::timestamptz)::bigint::text],
  '{true,1}', 'which says what went')
from rdq.audit a where a.action = 'purge_audit' order by a.id limit 1;

select unnest(array[
  is(e.code, 'RD002', 'older_than => ' || s.given),
  ok(e.hint like '%1 day%', 'and the hint says how old')
])
from (values ('''23 hours 59 minutes'''), ('null'), ('''0'''), ('''-1 year'''), ('''100000000 years''')) s (given)
cross join pg_temp.error_of(format('select rdq.purge_audit(%s)', s.given)) e;
select is(rdq.purge_audit('1 day'), 3::bigint, 'a day is enough');
select throws_ok('select rdq.purge_audit(''1 day'', max_rows => 0)', 'RD002', null, 'max_rows => 0');

-- Not even in the transaction of one that was called, nor with a row that claims something else.
select pg_temp.write_old('2 years', 2);
select is(e.code, 'RD007', 'a delete beside it')
from (select rdq.purge_audit('1 year', max_rows => 1)) p
cross join pg_temp.error_of('delete from rdq.audit where action = ''old''') e;
insert into rdq.audit (at, actor, action, affected, before)
select now(), 'mallory', 'purge_audit', 2, jsonb_build_object('first_id', a.id, 'last_id', a.id, 'transaction', pg_current_xact_id()::text)
from rdq.audit a where a.action = 'old';
select is(e.code, 'RD007', 'a delete of more or less than a row says') from pg_temp.error_of('delete from rdq.audit where action = ''old''') e;
select is(pg_temp.left_of('old'), 1::bigint, 'it is there');

select * from finish();
rollback;
