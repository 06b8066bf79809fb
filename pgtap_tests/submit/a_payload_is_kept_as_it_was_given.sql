begin;
\ir ../helpers/common.psql
select plan(22);

select rdq.create_queue('q');

create function pg_temp.kept(id uuid, out payload text, out content_type text)
language sql
begin atomic
  select convert_from(t.payload, 'UTF8'), t.content_type from rdq._task(kept.id) t;
end;

select unnest(array[
  is(k.payload, '{"b": 1,  "a": 2, "a": 3}', 'an untyped literal is text, byte for byte'),
  is(k.content_type, 'text/plain; charset=utf-8', 'and has the type of text')
])
from pg_temp.kept(rdq.submit('q', 'h', '{"b": 1,  "a": 2, "a": 3}')) k;

select unnest(array[
  is(k.payload, E'grüße 🎈\r\n\t ', 'text of any language, blanks and line ends too'),
  is(k.content_type, 'text/plain; charset=utf-8', 'is text')
])
from pg_temp.kept(rdq.submit('q', 'h', E'grüße 🎈\r\n\t '::text)) k;

select unnest(array[
  is(k.payload, ' {"b": 1,  "a": 2, "a": 3}', 'json keeps its order, its duplicates and its blanks'),
  is(k.content_type, 'application/json', 'and is JSON')
])
from pg_temp.kept(rdq.submit('q', 'h', ' {"b": 1,  "a": 2, "a": 3}'::json)) k;

select unnest(array[
  is(k.payload, '{"a": 3, "b": 1}', 'jsonb is kept in its own form'),
  is(k.content_type, 'application/json', 'and is JSON')
])
from pg_temp.kept(rdq.submit('q', 'h', '{"b": 1,  "a": 2, "a": 3}'::jsonb)) k;

select is(k.payload, '{"a": "\u0000"}', 'an escaped NUL in json is as good as any byte')
from pg_temp.kept(rdq.submit('q', 'h', '{"a": "\u0000"}'::json)) k;

select unnest(array[
  is(k.payload, '{"order": 42}', 'jsonb_build_object in third place'),
  is(k.content_type, 'application/json', 'is JSON')
])
from pg_temp.kept(rdq.submit('q', 'h', jsonb_build_object('order', 42))) k;
select is(k.payload, '{"order" : 42}', 'json_build_object in third place')
from pg_temp.kept(rdq.submit('q', 'h', json_build_object('order', 42))) k;

select rdq.submit('q', 'h', '\x00ff80'::bytea) as id \gset
select unnest(array[
  is(t.payload, '\x00ff80'::bytea, 'bytes'),
  is(t.content_type, 'application/octet-stream', 'are bytes')
])
from rdq._task(:'id'::uuid) t;

select is(k.payload, '', 'an empty payload is a payload') from pg_temp.kept(rdq.submit('q', 'h', '')) k;
select is(k.payload, 'null', 'and so is the JSON null') from pg_temp.kept(rdq.submit('q', 'h', 'null'::jsonb)) k;

select is(k.content_type, 'application/xml', 'content_type says otherwise for text')
from pg_temp.kept(rdq.submit('q', 'h', '<a/>', content_type => 'application/xml')) k;
select is(k.content_type, 'application/cloudevents+json', 'for json')
from pg_temp.kept(rdq.submit('q', 'h', '{}'::json, content_type => 'application/cloudevents+json')) k;
select is(k.content_type, 'application/cloudevents+json', 'for jsonb')
from pg_temp.kept(rdq.submit('q', 'h', '{}'::jsonb, content_type => 'application/cloudevents+json')) k;
select is(k.content_type, 'image/png', 'for bytes')
from pg_temp.kept(rdq.submit('q', 'h', '\x50'::bytea, content_type => 'image/png')) k;

select is(t.payload, '\x00ff80'::bytea, 'a claim hands out those bytes')
from rdq.claim(array['q'], 'tester', max_tasks => 100) t
where t.content_type = 'application/octet-stream';
select is(count(*), 0::bigint, 'all were claimed') from rdq.due;

select * from finish();
rollback;
