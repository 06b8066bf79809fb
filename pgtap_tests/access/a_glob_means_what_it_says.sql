begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql

create temporary table sample (globs text, queue text, permitted boolean);
insert into sample values
  ('{*}', 'q', true), ('{q}', 'q', true), ('{q}', 'qq', false), ('{qq}', 'q', false), ('{q*}', 'q', true),
  ('{q*}', 'qq', true), ('{*q}', 'qq', true), ('{*q}', 'qa', false), ('{a?c}', 'abc', true), ('{a?c}', 'ac', false),
  ('{a?c}', 'abbc', false), ('{a_c}', 'abc', false), ('{a_c}', 'a_c', true), ('{a%}', 'abc', false), ('{a.c}', 'abc', false),
  ('{a.c}', 'a.c', true), ('{x,q}', 'q', true), ('{x,y}', 'q', false), ('{Q}', 'q', false), ('{[a-z]}', 'q', false),
  ('{"a\\\\*"}', 'abc', false), ('{*.eu.*}', 'payments.eu.cards', true), ('{*.eu.*}', 'payments.us.cards', false);

select plan(count(*)::integer) from sample;

select rdq.create_queue(q.queue) from (select distinct s.queue from sample s) q;
create role rdq_test_producer;

create function pg_temp.permits(globs text[], queue text) returns boolean
language plpgsql
as $$
begin
  perform rdq.grant_access('rdq_test_producer', 'producer', globs);
  return pg_temp.as_role('rdq_test_producer', format('select rdq.submit(%L, %L, %L)', queue, 'h', 'x')) is distinct from 'RD007';
end
$$;

select is(pg_temp.permits(s.globs::text[], s.queue), s.permitted, format('%s: %s', s.globs, s.queue)) from sample s;

select * from finish();
rollback;
