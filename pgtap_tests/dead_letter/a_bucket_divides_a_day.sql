begin;
\ir ../helpers/common.psql

create temporary table good (bucket text);
insert into good values
  ('1 minute'), ('60 seconds'), ('2 minutes'), ('5 minutes'), ('15 minutes'), ('1 hour'), ('60 minutes'), ('12 hours'), ('1 day'), ('24 hours');
create temporary table wrong (bucket text);
insert into wrong values
  (null), ('0'), ('-1 hour'), ('1 second'), ('59 seconds'), ('7 minutes'), ('90 minutes'), ('5 hours'), ('25 hours'), ('2 days'), ('1 month'), ('1 year');

select plan((select count(*)::integer from good) + 2 * (select count(*)::integer from wrong) + 1);

select lives_ok(format('select * from rdq.dead_letter_timeline(bucket => %L)', g.bucket), g.bucket) from good g;
create temporary table refused as
select w.bucket, e.*
from wrong w
cross join pg_temp.error_of(format('select * from rdq.dead_letter_timeline(bucket => %L)', w.bucket)) e;
select is(r.code, 'RD002', 'bucket => ' || coalesce(r.bucket, 'null')) from refused r;
select ok(r.message like 'bucket is %' and r.hint like '%30 minutes%', 'the message names it, the hint what can be given')
from refused r;
select throws_ok($$ select * from rdq.dead_letter_timeline(max_rows => 0) $$, 'RD002', null, 'max_rows => 0');

select * from finish();
rollback;
