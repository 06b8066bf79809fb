-- Trouble case F2: a key that does not compress is too long for an index.
begin;
select plan(5);

select rdq.create_queue('q');
select string_agg(encode(sha256(i.number::text::bytea), 'base64'), '' order by i.number) as key
from generate_series(1, 140) i (number) \gset

select ok(octet_length(:'key') > 6000, 'six kilobytes of noise');
select rdq.submit('q', 'h', 'x', dedupe_key => :'key') as id \gset
select is(rdq.submit('q', 'h', 'x', dedupe_key => :'key'), :'id', 'join');
select isnt(rdq.submit('q', 'h', 'x', dedupe_key => :'key' || 'x'), :'id', 'with one more character they do not');
select is(t.dedupe_key, :'key', 'the key is kept') from rdq.tasks t where t.task_id = :'id';

select rdq.submit('q', 'h', 'x', dedupe_key => 'grüße 🎈') as id \gset
select is(rdq.submit('q', 'h', 'x', dedupe_key => 'grüße 🎈'), :'id', 'so does text of any language');

select * from finish();
rollback;
