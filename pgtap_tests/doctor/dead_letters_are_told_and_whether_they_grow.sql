begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/doctor.psql
select plan(6);

select rdq.create_queue('q');
select pg_temp.write_dead('q', 1);
select pg_temp.pass('3 hours');
select is(pg_temp.found('q'), 'info: 1 dead letter, the oldest for 3 hours', 'one that lies there');
select pg_temp.write_dead('q', 2);
select is(
  pg_temp.found('q'), 'info: 3 dead letters, the oldest for 3 hours; growing: 2 died in the last five minutes',
  'and two that have come since');
select pg_temp.pass('6 minutes');
select is(pg_temp.found('q'), 'info: 3 dead letters, the oldest for 3 hours', 'a while ago');
select is(d.advice, $$select * from rdq.dead_letter_groups(queue => 'q');$$, 'the advice groups them') from rdq.doctor() d;
select pg_temp.write_dead('q', 1000);
select is(
  pg_temp.found('q'), 'info: more than 1000 dead letters, the oldest for 3 hours; growing: 1000 died in the last five minutes',
  'nothing is counted beyond a thousand');
select rdq.purge_where(queue => 'q');
select is(pg_temp.found('q'), null, 'none');

select * from finish();
rollback;
