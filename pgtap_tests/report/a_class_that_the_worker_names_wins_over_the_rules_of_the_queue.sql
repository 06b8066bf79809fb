begin;
select plan(6);

select rdq.create_queue('q', '{"error_rules": [
  {"match": "Http4*", "class": "PERMANENT"},
  {"match": "Http*", "class": "TRANSIENT"}
]}');
select rdq.submit('q', 'h', 'x') from generate_series(1, 6);

create temp table failing as
select c.task_id, c.claim_token, v.*
from (select *, row_number() over () as place from rdq.claim('{q}', 'tester', 6)) c
join (
  values
    (1, 'Http404', null, 'DEAD', 'PERMANENT'),
    (2, 'Http503', null, 'PENDING', 'TRANSIENT'),
    (3, 'Reset', null, 'PENDING', 'AMBIGUOUS'),
    (4, 'Http404', 'TRANSIENT', 'PENDING', 'TRANSIENT'),
    (5, 'Http503', 'AMBIGUOUS', 'PENDING', 'AMBIGUOUS'),
    (6, 'Http503', 'PERMANENT', 'DEAD', 'PERMANENT')
) as v (place, error_type, said, status, class) using (place);

create temp table failed as
select f.*
from (
  select
    array_agg(v.task_id) as task_ids, array_agg(v.claim_token) as claim_tokens,
    array_agg(jsonb_build_object('type', v.error_type, 'class', v.said)) as failures
  from failing v
) v
cross join lateral rdq.report(v.task_ids, v.claim_tokens, v.failures) f;

select is(
  row(f.status, f.error_class, a.error_class)::text, row(v.status, v.class, v.class)::text,
  format('%s, said to be %s, by the answer and in the history', v.error_type, coalesce(v.said, 'nothing'))
)
from failing v
join failed f using (task_id)
join rdq.attempt a using (task_id)
order by v.place;

select * from finish();
rollback;
