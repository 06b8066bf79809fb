begin;
select plan(11);
\ir ../helpers/common.psql

select rdq.create_queue('q');

-- The message that is kept of a message that was reported.
create function pg_temp.kept(message text) returns text
language plpgsql
as $$
declare
  held record;
begin
  perform rdq.submit('q', 'h', 'x');
  select * into held from pg_temp.claim_one('q');
  perform f.status from rdq.fail(held.task_id, held.claim_token, 'Down', message => kept.message) f;
  return (select a.message from rdq.attempt a where a.task_id = held.task_id);
end
$$;

select is(pg_temp.kept(m), m, 'a message of 4,096 bytes is kept as it is') from repeat('x', 4096) m;
select is(pg_temp.kept(m), m, 'of two-byte characters too') from repeat('é', 2048) m;
select is(
  pg_temp.kept(repeat('x', 4097)), repeat('x', 4083) || E'\n[cut by rdq]', 'one byte more is cut, with a mark'
);
select is(
  pg_temp.kept(repeat('x', 300 * 1024)), repeat('x', 4083) || E'\n[cut by rdq]',
  '300 KB are cut to 4 KiB, the mark included'
);
select is(
  pg_temp.kept(repeat('é', 150 * 1024)), repeat('é', 2041) || E'\n[cut by rdq]',
  'two-byte characters are not cut in half'
);
select is(
  pg_temp.kept(repeat('€', 100 * 1024)), repeat('€', 1361) || E'\n[cut by rdq]', 'nor those of three'
);
select is(
  pg_temp.kept(repeat('😀', 75 * 1024)), repeat('😀', 1020) || E'\n[cut by rdq]', 'nor those of four'
);
select is(pg_temp.kept(''), '', 'an empty message is kept');
select is(pg_temp.kept(null), null, 'no message is none');
select is(pg_temp.kept(E' \t\r\n\u0001 x \n'), E' \t\r\n\u0001 x \n', 'blanks and control characters are kept');
select is_empty(
  $$ select * from rdq.dead_letters d where octet_length(d.message) > 4096 $$, 'what is listed is short as well'
);

select * from finish();
rollback;
