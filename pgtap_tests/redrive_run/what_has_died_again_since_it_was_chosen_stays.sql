-- A bulk pass chooses dead letters and locks them a moment later. One that was redriven and died again in
-- between is a new death: it is not touched.
begin;
\ir ../helpers/common.psql
select plan(4);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as id \gset
select dead_at as died_at, dead_at - interval '1 second' as chosen_at from rdq.dead \gset

select is_empty(
  format('select * from rdq._redrive(array[%L::uuid], array[null::timestamptz], died_until => %L)', :'id', :'chosen_at'),
  'a redrive that began before its death finds nothing');
select is_empty(
  format('select * from rdq._purge(array[%L::uuid], died_until => %L)', :'id', :'chosen_at'), 'nor does a purge');
select is(pg_temp.status_of(:'id'), 'DEAD', 'it is there');
select is(
  (select count(*) from rdq._redrive(array[:'id'::uuid], array[null::timestamptz], died_until => :'died_at')),
  1::bigint, 'one that began after it does');

select * from finish();
rollback;
