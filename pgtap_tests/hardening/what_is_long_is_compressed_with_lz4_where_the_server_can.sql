begin;
select plan(6);
\ir ../helpers/common.psql

create function pg_temp.method() returns text return (
  select case when 'lz4' = any (s.enumvals) then 'lz4' else 'pglz' end
  from pg_settings s
  where s.name = 'default_toast_compression'
);

select rdq.create_queue('q', '{"max_attempts": 1}');
select rdq.submit('q', 'h', repeat('long ', 2000), headers => jsonb_build_object('k', repeat('long ', 1500))) as task_id \gset
select claim_token from rdq.claim('{q}', 'tester') \gset
select rdq.fail(:'task_id', :'claim_token', 'Error', repeat('long ', 800), repeat('long ', 9000),
  jsonb_build_object('k', repeat('long ', 3000)));

select is(pg_column_compression(t.payload), pg_temp.method(), 'a payload') from rdq.task t;
select is(pg_column_compression(t.headers), pg_temp.method(), 'headers') from rdq.task t;
select is(pg_column_compression(a.message), pg_temp.method(), 'a message') from rdq.attempt a;
select is(pg_column_compression(a.stack), pg_temp.method(), 'a stack') from rdq.attempt a;
select is(pg_column_compression(a.detail), pg_temp.method(), 'details') from rdq.attempt a;

alter table rdq.attempt alter column stack set compression pglz;
\ir ../../sql/compression.sql
select is(a.attcompression, 'p', 'a method that was chosen stays when the schema is installed again')
from pg_attribute a where a.attrelid = 'rdq.attempt'::regclass and a.attname = 'stack';

select * from finish();
rollback;
