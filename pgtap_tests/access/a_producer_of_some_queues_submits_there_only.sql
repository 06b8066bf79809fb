begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(17);

select rdq.create_queue(q.name) from unnest('{payments,payments.eu,payments.us,xpayments.eu,mails}'::text[]) q (name);
select pg_temp.create_role('producer', '{payments.*}');

select is(
  length(pg_temp.as_role('rdq_test_producer', format('select rdq.submit(%L, ''h'', ''x'')', q.name))), 36,
  q.name || ' is one of them')
from unnest('{payments.eu,payments.us}'::text[]) q (name);
select is(
  pg_temp.as_role('rdq_test_producer', format('select rdq.submit(%L, ''h'', ''x'')', q.name)), 'RD007',
  q.name || ' is not')
from unnest('{payments,xpayments.eu,mails}'::text[]) q (name);
select is(
  pg_temp.as_role('rdq_test_producer', 'select rdq.submit(''mails'', ''h'', ''x'')', 'session'), 'RD007',
  'as the user of the session neither');
select is(
  pg_temp.as_role('rdq_test_producer', format('select rdq.submit_many(%L, ''[{"handler": "h", "payload": "x"}]'')', q.name)) = 'RD007',
  q.refused, 'submit_many: ' || q.name)
from (values ('payments.eu', false), ('mails', true)) q (name, refused);
select is(
  pg_temp.as_role('rdq_test_producer', 'select rdq.submit(''payments.none'', ''h'', ''x'')'), 'RD001',
  'one of its names that is not there is unknown');
select is(
  pg_temp.as_role('rdq_test_producer', 'select rdq.submit(''none'', ''h'', ''x'')'), 'RD007',
  'whether any other name is that of a queue is not told');
select is(count(*), 3::bigint, 'what was refused was not stored') from rdq.task;

set local role rdq_test_producer;
select rdq.submit('payments.eu', 'h', 'x', task_id => '01890000-0000-7000-8000-000000000001', dedupe_key => 'k');
do $$
begin
  perform rdq.submit('mails', 'h', 'x', task_id => '01890000-0000-7000-8000-000000000001');
exception when sqlstate 'RD007' then
  perform set_config('rdq_test.message', sqlerrm, true);
end
$$;
reset role;
select matches(
  current_setting('rdq_test.message'), 'rdq_test_producer.*producer.*mails', 'the message says who, as what and where');

create function pg_temp.hint() returns text
language plpgsql
as $$
declare
  hint text;
begin
  set local role rdq_test_producer;
  begin
    perform rdq.submit('mails', 'h', 'x');
  exception when others then
    get stacked diagnostics hint = pg_exception_hint;
  end;
  reset role;
  return hint;
end
$$;
select ok(pg_temp.hint() like '%rdq.grant_access%', 'the hint says how to permit it: ' || pg_temp.hint());

select rdq.grant_access('rdq_test_producer', 'producer', '{mails,payments_?}');
select is(
  pg_temp.as_role('rdq_test_producer', 'select rdq.submit(''payments.eu'', ''h'', ''x'')'), 'RD007',
  'granted again: the queues are replaced');
select is(length(pg_temp.as_role('rdq_test_producer', 'select rdq.submit(''mails'', ''h'', ''x'')')), 36, 'by those');
select is(
  pg_temp.as_role('rdq_test_producer', 'select rdq.submit(''payments_e'', ''h'', ''x'')'), 'RD001',
  'a question mark stands for one character');
select is(
  pg_temp.as_role('rdq_test_producer', 'select rdq.submit(''payments.e'', ''h'', ''x'')'), 'RD007',
  'an underscore stands for itself');

select * from finish();
rollback;
