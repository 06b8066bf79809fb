begin;
\ir ../helpers/common.psql

create temporary table sample (given text);
insert into sample values
  ($$ error_class => 'permanent' $$), ($$ error_class => 'FATAL' $$), ($$ error_class => '' $$),
  ($$ dead_reason => 'dead' $$), ($$ dead_reason => 'TRANSIENT' $$), ($$ dead_reason => '' $$);

select plan(12 * count(*)::integer + 12) from sample;

select rdq.create_queue('q');

create temporary table refused as
select s.given, f.name, e.*
from sample s
cross join (values ('dead_letters'), ('dead_letter_groups'), ('redrive_where'), ('purge_where')) f (name)
cross join pg_temp.error_of(format('select * from rdq.%s(queue => %L, %s)', f.name, 'q', s.given)) e;

select is(r.code, 'RD002', r.name || r.given) from refused r;
select ok(r.message like split_part(trim(r.given), ' ', 1) || '%', 'the message names the argument') from refused r;
select ok(
  r.hint like case when r.given like '%class%' then '%AMBIGUOUS%' else '%UNROUTABLE%' end, 'the hint lists them')
from refused r;

select is(e.code, 'RD002', format('max_rows => %s', coalesce(s.given, 'null')))
from (values ('0'), ('-1'), ('10001'), (null)) s (given)
cross join pg_temp.error_of(format('select * from rdq.dead_letters(max_rows => %L)', s.given)) e;
select is(e.code, 'RD002', format('groups: max_rows => %s', coalesce(s.given, 'null')))
from (values ('0'), ('-1'), ('10001'), (null)) s (given)
cross join pg_temp.error_of(format('select * from rdq.dead_letter_groups(max_rows => %L)', s.given)) e;
select lives_ok(format('select * from rdq.dead_letters(max_rows => %s)', s.given), 'max_rows => ' || s.given)
from (values (1), (10000)) s (given);
select lives_ok(
  format('select * from rdq.dead_letter_groups(max_rows => %s)', s.given), 'groups: max_rows => ' || s.given)
from (values (1), (10000)) s (given);

select * from finish();
rollback;
