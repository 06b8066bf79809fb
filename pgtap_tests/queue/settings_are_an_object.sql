begin;
\ir ../helpers/common.psql
select plan(8);

select rdq.create_queue('q');

select is(e.code, 'RD002', format('settings must not be %s', coalesce(s.given, 'null')))
from (values ('[]'), ('"max_attempts"'), ('3'), ('null'), ('true'), (null)) s (given)
cross join pg_temp.error_of(format('select rdq.alter_queue(queue => %L, settings => %L)', 'q', s.given)) e;
select isnt(
  pg_temp.hint_of($$ select rdq.alter_queue(queue => 'q', settings => '[]') $$), '', 'a hint says what to give');
select lives_ok($$ select rdq.alter_queue(queue => 'q', settings => '{}') $$, 'an empty object changes nothing');

select * from finish();
rollback;
