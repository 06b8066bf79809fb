begin;
\ir ../helpers/common.psql
\ir ../helpers/doctor.psql
\ir ../helpers/time.psql
select plan(5);

select rdq.create_queue('q');
select rdq.submit('q', 'chargee', 'x');
select rdq.submit('q', 'charge', 'x');
create function pg_temp.release_all(reason text) returns bigint
language sql
begin atomic
  select count(*)
  from (select array_agg(c.task_id) as ids, array_agg(c.claim_token) as tokens from rdq.claim('{q}', 'tester', 9) c where c.handler = 'chargee') c
  cross join lateral rdq.release(c.ids, c.tokens, reason) r;
end;

select pg_temp.release_all('this runner has no handler "chargee"');
select is_empty($$ select * from rdq.doctor() d where d.finding ~ 'handed back' $$, 'once is a shutdown');
update rdq.due set due_at = clock_timestamp();
select pg_temp.release_all('this runner has no handler "chargee"');
select matches(
  string_agg(d.finding, ' '),
  '^tasks of handler chargee are handed back again and again, the last time . seconds? ago: this runner has no handler "chargee"$',
  'twice in a row is none that has it')
from rdq.doctor() d where d.finding ~ 'handed back';
select is(d.severity || ' ' || d.subject, 'warning q', 'a warning of the queue') from rdq.doctor() d where d.finding ~ 'handed back';

-- One that a locked dead letter holds up.
select rdq.submit('q', 'dies', 'x', error => '{"class": "PERMANENT"}');
select r.redrive_id from rdq.redrive_where('q', handler => 'dies', per_second => 0.001) r \gset
update rdq.redrive_run set state = 'RUNNING', settled_at = null;
insert into rdq.redrive_passed values (:'redrive_id', gen_random_uuid());
select is_empty($$ select * from rdq.doctor() d where d.finding ~ 'has locked' $$, 'a moment is nothing');
select pg_temp.pass('2 minutes');
select matches(string_agg(d.finding, ' '), 'waits for 1 dead letter that another', 'what is locked for long is told')
from rdq.doctor() d where d.finding ~ 'has locked';

select * from finish();
rollback;
