begin;
\ir ../helpers/common.psql
select plan(8);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', dedupe_key => 'k', error => '{"class": "PERMANENT"}') as id \gset
select rdq.submit('q', 'h', 'y', dedupe_key => 'k') as twin \gset
select pg_temp.stored() as before \gset

select unnest(array[
  is(e.code, 'RD008', 'the twin waits'),
  ok(e.message like '%' || :'id' || '%', 'the message names the task'),
  ok(e.hint > '', 'a hint says what to do')
])
from pg_temp.error_of(format($$ select rdq.redrive(%L) $$, :'id')) e;
select throws_ok(format($$ select rdq.redrive(%L, 'edited') $$, :'id'), 'RD008', null, 'with another payload too');
select is(pg_temp.stored(), :'before', 'it stays dead and nothing changed');

select * from pg_temp.claim_one('q') \gset
select throws_ok(format($$ select rdq.redrive(%L) $$, :'id'), 'RD008', null, 'the twin is held');
select rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'PERMANENT');
select is(r.status, 'PENDING', 'the twin is dead: it goes') from rdq.redrive(:'id') r;
select throws_ok(format($$ select rdq.redrive(%L) $$, :'twin'), 'RD008', null, 'and now the twin does not');

select * from finish();
rollback;
