begin;
select plan(5);

select rdq.create_queue('short', '{"lease": "5 s"}');
select rdq.create_queue('long', '{"lease": "2 hours"}');
select rdq.submit(queue, 'h', 'x') from unnest('{short,long}'::text[]) queue, generate_series(1, 4);

select results_eq(
  $$ select queue, lease_expires_at - claimed_at from rdq.claim('{short,long}', 'tester', 2) order by queue $$,
  $$ values ('long', interval '2 hours'), ('short', interval '5 s') $$,
  'each queue has its own'
);
select is(lease_expires_at - claimed_at, interval '30 minutes', 'a longer one is given')
from rdq.claim('{short}', 'tester', lease => '30 minutes');
select is(lease_expires_at - claimed_at, interval '0.1 s', 'the shortest')
from rdq.claim('{long}', 'tester', lease => '0.1 s');
select is(lease_expires_at - claimed_at, interval '30 days', 'and the longest too')
from rdq.claim('{long}', 'tester', lease => '30 days');
select isnt(min(claim_token::text), max(claim_token::text), 'each claim has a token of its own')
from rdq.lease;

select * from finish();
rollback;
