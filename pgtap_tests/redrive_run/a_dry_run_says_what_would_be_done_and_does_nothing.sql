begin;
\ir ../helpers/common.psql
select plan(5);

select rdq.create_queue('q');
select rdq.create_queue('other');
select rdq.submit(q.name, h.name, 'x', error => '{"class": "PERMANENT"}')
from (values ('q'), ('other')) q (name)
cross join (values ('a'), ('a'), ('b')) h (name);
select pg_temp.stored() as before \gset

select results_eq(
  $$ select redrive_id, state, matched, sent, skipped from rdq.redrive_where(queue => 'q', dry_run => true) $$,
  $$ values (null::uuid, 'DRY_RUN', 3::bigint, 0::bigint, 0::bigint) $$,
  'a count');
select is(r.matched, 2::bigint, 'of what the filter means')
from rdq.redrive_where(queue => 'q', handler => 'a', spread => '1 hour', dry_run => true, reason => 'r') r;
select throws_ok(
  $$ select * from rdq.redrive_where(dry_run => true) $$, 'RD002', null, 'it is as strict as the real one');
select is(pg_temp.stored(), :'before', 'nothing changed');

select is(array[r.matched, r.sent], '{3,3}', 'the real one does exactly that') from rdq.redrive_where(queue => 'q') r;

select * from finish();
rollback;
