begin;
\ir ../helpers/common.psql

select rdq.create_queue('q', '{"max_payload_bytes": 30}');
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as id \gset

create temporary table sample (arguments text, code text);
insert into sample values
  ('payload => repeat(''x'', 31)', 'RD006'),
  ('payload => to_json(repeat(''x'', 29))', 'RD006'),
  ('payload => to_jsonb(repeat(''x'', 29))', 'RD006'),
  ('payload => convert_to(repeat(''x'', 31), ''UTF8'')', 'RD006'),
  ('content_type => ''''', 'RD002'),
  ('content_type => repeat(''x'', 241)', 'RD002'),
  ('content_type => E''text/plain\nX-Other: 1''', 'RD002'),
  ('headers => ''[]''', 'RD002'),
  ('headers => ''null''', 'RD002'),
  ('headers => ''"text"''', 'RD002'),
  ('headers => ''{"a": 1}''', 'RD002'),
  ('headers => ''{"a": {"b": "c"}}''', 'RD002'),
  ('headers => ''{"a": null}''', 'RD002'),
  ('headers => ''{"rdq.attempt": "1"}''', 'RD002'),
  ('headers => jsonb_build_object(''a'', repeat(''x'', 16384))', 'RD002'),
  ('payload => ''fine'', headers => ''{"rdq.attempt": "1"}''', 'RD002'),
  ('payload => ''{}''::jsonb, content_type => ''''', 'RD002'),
  ('give_up_at => now() - interval ''1 second''', 'RD002'),
  ('run_at => now() + interval ''2 hours'', give_up_at => now() + interval ''1 hour''', 'RD002'),
  ('run_at => ''infinity''', 'RD002'),
  ('give_up_at => ''infinity''', 'RD002');

select plan(2 * count(*)::integer + 4) from sample;

select pg_temp.stored() as before \gset
select unnest(array[
  is(e.code, s.code, s.arguments),
  ok(e.hint > '' and e.message > '', 'it says what to do: ' || e.message)
])
from sample s
cross join pg_temp.error_of(format('select rdq.redrive(%L, %s)', :'id', s.arguments)) e;
select is(pg_temp.stored(), :'before', 'nothing changed: no ticket, no task, no audit');

-- Only what is given: a queue that takes less than it did does not hold back what it has.
select rdq.alter_queue('q', '{"max_payload_bytes": 0}');
select lives_ok(format('select rdq.redrive(%L, content_type => %L)', :'id', 'text/csv'), 'what stays is not checked');
select rdq.cancel(:'id');
select throws_ok(format('select rdq.redrive(%L, %L)', :'id', 'x'), 'RD006', null, 'what is given is');
select lives_ok(format('select rdq.redrive(%L, %L)', :'id', ''), 'at the limit');

select * from finish();
rollback;
