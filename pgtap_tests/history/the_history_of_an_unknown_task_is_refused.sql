begin;
select plan(6);
\ir ../helpers/common.psql

create temp table refused as
select v.place, v.call, e.*
from (
  values
    (1, $$ rdq.history('00000000-0000-7000-8000-000000000000') $$),
    (2, $$ rdq.envelope('00000000-0000-7000-8000-000000000000') $$),
    (3, $$ rdq.history(null) $$)
) as v (place, call)
cross join lateral pg_temp.error_of('select * from ' || v.call) e;

select ok(
  code = 'RD003' and message like case place when 3 then '%null%' else '%00000000-0000-7000-8000-000000000000%' end,
  format('%s: %s', call, message)
)
from refused
order by place;
select matches(hint, 'submitted.*purged', 'it was never submitted, or purged') from refused order by place;

select * from finish();
rollback;
