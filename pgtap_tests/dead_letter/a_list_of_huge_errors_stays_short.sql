-- Trouble case A7, at a scale of one in fifty: 2,000 dead letters, 20 of them with errors of 1 MB, some with content
-- that looks undecodable. The list does not depend on the whole of every error.
begin;
select plan(9);

select rdq.create_queue('q');

create temporary table noise as
select string_agg(md5(n::text), '') as noise from generate_series(1, 32768) n;

create function pg_temp.die(number integer, error jsonb) returns void
language sql
begin atomic
  select rdq.submit_many('q', (
    select jsonb_agg(jsonb_build_object('handler', 'h', 'payload', 'x', 'error', '{"class": "PERMANENT"}'::jsonb || error))
    from generate_series(1, number)
  ));
end;

select pg_temp.die(1976, '{"type": "E", "message": "usual"}');
select pg_temp.die(20, jsonb_build_object('type', noise, 'message', noise, 'stack', noise, 'detail', noise)) from noise;
select pg_temp.die(4, jsonb_build_object('type', t.odd, 'message', t.odd, 'stack', t.odd))
from (values (concat(E'\x01\x1b[31m\u202e', U&'\FFFD\FFFF', E'\\x00\\ud800%s\t"<script>'))) t (odd);

select is(count(*), 2000::bigint, 'all are listed') from rdq.dead_letters;
select ok(max(octet_length(d::text)) < 1200, 'each in a short row: ' || max(octet_length(d::text)))
from rdq.dead_letters d;
select is(count(*), 3::bigint, 'in three groups') from rdq.dead_letter_groups();
select ok(max(octet_length(g::text)) < 1200, 'as short') from rdq.dead_letter_groups() g;
select ok(max(octet_length(t::text)) < 1200, 'as are the rows of the timeline') from rdq.dead_letter_timeline() t;
select is(octet_length(h.stack), 65536, 'the long stack is there by id')
from rdq.dead_letters(error_type => md5('1') || '*', max_rows => 1) d
cross join lateral rdq.history(d.task_id) h;

-- Page after page, while as many new ones arrive.
create temporary table before as select d.task_id from rdq.dead_letters d;
create temporary table shown (task_id uuid);
do $$
declare
  page_ids uuid[];
  last_page text;
begin
  for turn in 1 .. 40 loop
    select array_agg(d.task_id), (array_agg(d.page))[count(*)]
    into page_ids, last_page
    from rdq.dead_letters(max_rows => 100, after => last_page) d;
    exit when page_ids is null;
    insert into shown select unnest(page_ids);
    perform pg_temp.die(100, '{"type": "New"}');
  end loop;
end
$$;
select is(count(*), 2000::bigint, 'as many are shown as there were') from shown;
select set_eq('select task_id from shown', 'select task_id from before', 'each once');
select is(count(*), 4000::bigint, 'and the new ones are there') from rdq.dead_letters;

select * from finish();
rollback;
