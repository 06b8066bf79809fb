begin;
\ir ../helpers/common.psql
select plan(1);

select rdq.create_queue('q');

create temporary table answered as
select row_number() over () as place, a.id
from rdq.submit_many('q', '[
  {"handler": "h", "payload": "plain {\"a\": 1}"},
  {"handler": "h", "payload": ""},
  {"handler": "h", "payload": {"b": 1, "a": [2]}},
  {"handler": "h", "payload": [1, 2]},
  {"handler": "h", "payload": 42},
  {"handler": "h", "payload": false},
  {"handler": "h", "payload_base64": "AP+A"},
  {"handler": "h", "payload_base64": ""},
  {"handler": "h", "payload": "<a/>", "content_type": "application/xml"},
  {"handler": "h", "payload_base64": "iVBORw==", "content_type": "image/png"}
]') a (id);

select pg_temp.rows_are(
  $$ select t.payload, t.content_type from answered a cross join rdq._task(a.id) t order by a.place $$,
  $$
    values
      ('plain {"a": 1}'::bytea, 'text/plain; charset=utf-8'),
      ('', 'text/plain; charset=utf-8'),
      ('{"b": 1, "a": [2]}', 'application/json'),
      ('[1, 2]', 'application/json'),
      ('42', 'application/json'),
      ('false', 'application/json'),
      ('\x00ff80', 'application/octet-stream'),
      ('', 'application/octet-stream'),
      ('<a/>', 'application/xml'),
      ('\x89504e47', 'image/png')
  $$,
  'a string is text, other JSON is JSON, payload_base64 is bytes');

select * from finish();
rollback;
