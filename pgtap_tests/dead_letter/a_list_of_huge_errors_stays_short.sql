-- Trouble case A7: the list does not depend on the whole of every error.
begin;
select plan(3);

select rdq.create_queue('q');
select rdq.submit_many('q', (
  select jsonb_agg(jsonb_build_object('handler', 'h', 'payload', repeat('p', 1000), 'error', jsonb_build_object(
    'class', 'PERMANENT', 'type', repeat('T', 1000), 'message', repeat('é', 4000), 'stack', repeat('s', 70000))))
  from generate_series(1, 100)
));

select is(count(*), 100::bigint, 'all are listed') from rdq.dead_letters;
select ok(max(octet_length(d::text)) < 1200, 'each in a short row: ' || max(octet_length(d::text)))
from rdq.dead_letters d;
select ok(max(octet_length(g::text)) < 1200, 'and so is a group') from rdq.dead_letter_groups() g;

select * from finish();
rollback;
