begin;
\ir ../helpers/common.psql
select plan(16);

select rdq.create_queue('q', '{"max_payload_bytes": 30}');
select rdq.submit('q', 'h', '{"a": 1}', content_type => 'application/x-order', error => '{"class": "PERMANENT"}') as id \gset

create function pg_temp.kept(id uuid) returns bytea
language sql
begin atomic
  select t.payload from rdq.task t where t.id = kept.id;
end;

select rdq.redrive(:'id', '{"a":   2}');
select is(pg_temp.kept(:'id'), '{"a":   2}'::bytea, 'an untyped literal is text');
select is(c.payload, '{"a":   2}'::bytea, 'a claim hands it out') from rdq.claim(array['q'], 'tester') c;
select rdq.cancel(:'id');
select rdq.redrive(:'id', '{"a":  3, "a": 4}'::json);
select is(pg_temp.kept(:'id'), '{"a":  3, "a": 4}'::bytea, 'json is kept byte for byte');
select rdq.cancel(:'id');
select rdq.redrive(:'id', '{"a":  3, "a": 4}'::jsonb);
select is(pg_temp.kept(:'id'), '{"a": 4}'::bytea, 'jsonb in its own form');
select rdq.cancel(:'id');
select rdq.redrive(:'id', jsonb_build_object('a', 5));
select is(pg_temp.kept(:'id'), '{"a": 5}'::bytea, 'jsonb_build_object');
select rdq.cancel(:'id');
select rdq.redrive(:'id', '\x00ff'::bytea);
select is(pg_temp.kept(:'id'), '\x00ff'::bytea, 'bytes');
select rdq.cancel(:'id');
select rdq.redrive(:'id', payload => 'grüße'::text, reason => 'r');
select is(pg_temp.kept(:'id'), convert_to('grüße', 'UTF8'), 'text');
select rdq.cancel(:'id');
select rdq.redrive(:'id', '');
select is(pg_temp.kept(:'id'), ''::bytea, 'an empty one is an edit');
select rdq.cancel(:'id');
select rdq.redrive(:'id', 'last');
select rdq.cancel(:'id');
select rdq.redrive(:'id');
select is(pg_temp.kept(:'id'), 'last'::bytea, 'without one the last edit stays');
select rdq.cancel(:'id');
select rdq.redrive(:'id', null);
select is(pg_temp.kept(:'id'), 'last'::bytea, 'null is none');
select rdq.cancel(:'id');
select is(t.content_type, 'application/x-order', 'its content type stays') from rdq.task t where t.id = :'id';

select pg_temp.stored() as before \gset
select throws_ok(format('select rdq.redrive(%L, %L)', :'id', repeat('x', 31)), 'RD006', null, 'one byte too many');
select ok(pg_temp.hint_of(format('select rdq.redrive(%L, %L)', :'id', repeat('x', 31))) > '', 'with a hint');
select throws_ok(
  format('select rdq.redrive(%L, %L::jsonb)', :'id', to_jsonb(repeat('x', 30))), 'RD006', null, 'as jsonb');
select is(pg_temp.stored(), :'before', 'nothing changed');
select lives_ok(format('select rdq.redrive(%L, %L)', :'id', repeat('x', 30)), 'as many as the queue takes');

select * from finish();
rollback;
