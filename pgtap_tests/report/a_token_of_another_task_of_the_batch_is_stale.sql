-- A token is right for its own task only, also where the batch has both.
begin;
select plan(4);
\ir ../helpers/common.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') from generate_series(1, 3);
create temp table held as
select c.task_id, c.claim_token, row_number() over () as place from rdq.claim('{q}', 'tester', 3) c;
create temp table given as
select array_agg(a.task_id order by a.place) as ids, array_agg(b.claim_token order by a.place) as tokens
from held a
join held b on b.place = (array[2, 1, 3])[a.place];

select is(count(*), 0::bigint, 'two that were exchanged are not released')
from given g
cross join lateral rdq.release(g.ids[:2], g.tokens[:2]);
select results_eq(
  $$ select r.status, r.stale from given g cross join lateral rdq.report(g.ids, g.tokens, array_fill(null::jsonb, array[3])) r $$,
  $$ values ('IN_FLIGHT', true), ('IN_FLIGHT', true), ('SUCCEEDED', false) $$,
  'they are stale in a report, the third is not'
);
select is(count(*), 2::bigint, 'and are held as before')
from rdq.lease l
join held h using (task_id, claim_token);
select is(count(*), 1::bigint, 'one attempt is recorded') from rdq.attempt;

select * from finish();
rollback;
