-- Trouble case F1: of a hundred one conflicts.
begin;
\ir ../helpers/common.psql
select plan(8);

select rdq.create_queue('q');
select rdq.create_queue('other');
select rdq.submit_many('q', (
  select jsonb_agg(jsonb_build_object('handler', 'h', 'payload', i.number, 'dedupe_key', 'k' || i.number,
    'error', '{"class": "PERMANENT"}'::jsonb))
  from generate_series(1, 100) i (number)
));
select t.task_id as conflicting from rdq.tasks t where t.dedupe_key = 'k50' \gset
select rdq.submit('q', 'h', 'y', dedupe_key => 'k50') as twin \gset
select rdq.submit('other', 'h', 'y', dedupe_key => 'k50');

select results_eq(
  $$ select state, matched, sent, skipped from rdq.redrive_where(queue => 'q') $$,
  $$ values ('DONE', 100::bigint, 99::bigint, 1::bigint) $$,
  'ninety-nine go, one is skipped');
select is(count(*), 1::bigint, 'one is dead') from rdq.dead_letters(queue => 'q');
select is(pg_temp.status_of(:'conflicting'), 'DEAD', 'the one that conflicts');
select is(count(*), 100::bigint, 'the others and the twin can be claimed')
from rdq.claim(array['q'], 'tester', max_tasks => 200);
select is(count(*), 1::bigint, 'the other queue does not mind')
from rdq.claim(array['other'], 'tester', max_tasks => 200);

select rdq.create_queue('twins');
select rdq.submit('twins', 'h', '1', dedupe_key => 'k', error => '{"class": "PERMANENT"}');
select rdq.submit('twins', 'h', '2', dedupe_key => 'k', error => '{"class": "PERMANENT"}');
select results_eq(
  $$ select state, matched, sent, skipped from rdq.redrive_where(queue => 'twins') $$,
  $$ values ('DONE', 2::bigint, 1::bigint, 1::bigint) $$,
  'of two dead letters with one key one goes');
select is(array_agg(t.status order by t.status), '{DEAD,PENDING}', 'and one stays')
from rdq.tasks t where t.queue = 'twins';
select is(count(*), 1::bigint, 'with one holder of the key') from rdq.dedupe d where d.queue = 'twins';

select * from finish();
rollback;
