begin;
\ir ../helpers/common.psql
select plan(5);

select rdq.create_queue('q', '{"max_attempts": 1, "ladder": [0]}');
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}');
select is(d.redrive_id, null, 'none before it was redriven') from rdq.dead_letters d;

select r.redrive_id as redrive from rdq.redrive_where('q') r \gset
select c.task_id, f.status from pg_temp.claim_one('q') c
cross join lateral rdq.fail(c.task_id, c.claim_token, 'E', error_class => 'PERMANENT') f;
select is(d.redrive_id, :'redrive'::uuid, 'the view names the redrive after which it died again') from rdq.dead_letters d;
select is(d.redrive_id, :'redrive'::uuid, 'and so does the function') from rdq.dead_letters(queue => 'q') d;

select rdq.redrive(d.task_id) from rdq.dead_letters d;
select c.task_id, f.status from pg_temp.claim_one('q') c
cross join lateral rdq.fail(c.task_id, c.claim_token, 'E', error_class => 'PERMANENT') f;
select is(d.redrive_id, null, 'one that was redriven by itself has none') from rdq.dead_letters d;
select is(
  array_agg(a.attname::text order by a.attnum),
  (
    select (array_agg(c.name order by c.place))[11:] from pg_proc p
    cross join unnest(p.proargnames) with ordinality c (name, place)
    where p.oid = 'rdq.dead_letters'::regproc
  ),
  'the view and the function have the same columns'
)
from pg_attribute a where a.attrelid = 'rdq.dead_letters'::regclass and a.attnum > 0;

select * from finish();
rollback;
