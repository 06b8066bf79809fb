-- report, complete, fail, release and heartbeat with arguments that cannot be meant: an error of the
-- documented class that names the argument, with advice, and nothing half done.
begin;
select plan(86);
\ir ../helpers/common.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') from generate_series(1, 2);
create temp table held as
select c.task_id, c.claim_token, row_number() over () as place from rdq.claim('{q}', 'tester', 2) c;
select
  array_agg(task_id order by place) as ids, array_agg(claim_token order by place) as tokens,
  (array_agg(task_id order by place))[1] as id, (array_agg(claim_token order by place))[1] as token
from held \gset

create temp table wrong as
select row_number() over () as place, v.name, format(v.call, :'ids', :'tokens') as call, v.message
from (
  values
    ('a token too few', $$ rdq.report(%1$L, (%2$L::uuid[])[1:1], '{null,null}') $$, '%task_ids%2%claim_tokens%1%'),
    ('a failure too few', $$ rdq.report(%1$L, %2$L, '{null}') $$, '%failures%1%task_ids%2%'),
    ('a failure too many', $$ rdq.report(%1$L, %2$L, '{null,null,null}') $$, '%failures%3%task_ids%2%'),
    ('no ids', $$ rdq.report(null, %2$L, '{null,null}') $$, '%task_ids%'),
    ('no tokens', $$ rdq.report(%1$L, null, '{null,null}') $$, '%claim_tokens%'),
    ('no failures', $$ rdq.report(%1$L, %2$L, null) $$, '%failures%'),
    ('a null id', $$ rdq.report(array[null, (%1$L::uuid[])[2]], %2$L, '{null,null}') $$, '%1%task_ids%null%'),
    ('a null token', $$ rdq.report(%1$L, array[(%2$L::uuid[])[1], null], '{null,null}') $$, '%2%claim_tokens%null%'),
    ('a failure that is a string', $$ rdq.report(%1$L, %2$L, array[null, '"Down"']::jsonb[]) $$, '%failures[2]%string%'),
    ('a failure that is a number', $$ rdq.report(%1$L, %2$L, array['{}', '404']::jsonb[]) $$, '%failures[2]%number%'),
    ('a failure that is an array', $$ rdq.report(%1$L, %2$L, array['[]', '{}']::jsonb[]) $$, '%failures[1]%array%'),
    ('an unknown class', $$ rdq.report(%1$L, %2$L, array['{}', '{"class": "MAYBE"}']::jsonb[]) $$, '%failures[2]%class%MAYBE%'),
    ('a class in lower case', $$ rdq.report(%1$L, %2$L, array['{"class": "transient"}', null]::jsonb[]) $$,
      '%failures[1]%class%transient%'),
    ('a class that is a number', $$ rdq.report(%1$L, %2$L, array['{"class": 1}', null]::jsonb[]) $$, '%failures[1]%class%1%'),
    ('an empty class', $$ rdq.report(%1$L, %2$L, array['{"class": ""}', null]::jsonb[]) $$, '%failures[1]%class%'),

    ('fail: an unknown class', $$ rdq.fail((%1$L::uuid[])[1], (%2$L::uuid[])[1], 'Down', error_class => 'MAYBE') $$,
      '%error_class%MAYBE%'),
    ('fail: no id', $$ rdq.fail(null, (%2$L::uuid[])[1], 'Down') $$, '%null%'),
    ('fail: no token', $$ rdq.fail((%1$L::uuid[])[1], null, 'Down') $$, '%null%'),
    ('complete: no id', $$ rdq.complete(null, (%2$L::uuid[])[1]) $$, '%null%'),
    ('complete: no token', $$ rdq.complete((%1$L::uuid[])[1], null) $$, '%null%'),

    ('release: a token too few', $$ rdq.release(%1$L, (%2$L::uuid[])[1:1]) $$, '%task_ids%2%claim_tokens%1%'),
    ('release: no tokens', $$ rdq.release(%1$L, null) $$, '%claim_tokens%'),
    ('release: a null id', $$ rdq.release(array[null, (%1$L::uuid[])[2]], %2$L) $$, '%1%task_ids%null%'),
    ('heartbeat: a token too many', $$ rdq.heartbeat((%1$L::uuid[])[1:1], %2$L) $$, '%task_ids%1%claim_tokens%2%'),
    ('heartbeat: a null token', $$ rdq.heartbeat(%1$L, array[(%2$L::uuid[])[1], null]) $$, '%2%claim_tokens%null%'),
    ('heartbeat: no lease', $$ rdq.heartbeat(%1$L, %2$L, '0') $$, '%lease%00:00:00%'),
    ('heartbeat: a negative lease', $$ rdq.heartbeat(%1$L, %2$L, '-1 hour') $$, '%lease%-01:00:00%'),
    ('heartbeat: an endless lease', $$ rdq.heartbeat(%1$L, %2$L, '170000000 years') $$, '%lease%170000000 years%')
) as v (name, call, message);

select pg_temp.stored() as before \gset
create temp table refused as
select w.*, e.code, e.message as said, e.hint
from wrong w
cross join lateral pg_temp.error_of('select * from ' || w.call) e;

select is(code, 'RD002', name || ' is an invalid argument') from refused order by place;
select ok(said like message, name || ' is named: ' || coalesce(said, 'not refused'))
from refused
order by place;
select ok(length(hint) > 20, name || ' has advice') from refused order by place;
select is(pg_temp.stored(), :'before', 'nothing has changed');

select is(count(r), 2::bigint, 'and the right report is taken')
from rdq.report(:'ids', :'tokens', '{null,null}') r
where not stale;

select * from finish();
rollback;
