-- Also those that died at the same instant, while new ones arrive and while earlier ones are redriven.
begin;
\ir ../helpers/common.psql
select plan(7);

select rdq.create_queue('q');
select rdq.create_queue('other');

create function pg_temp.die(number integer) returns void
language sql
begin atomic
  select rdq.submit_many('q', (
    select jsonb_agg(jsonb_build_object('handler', 'h', 'payload', i.number, 'error', '{"class": "PERMANENT"}'::jsonb))
    from generate_series(1, die.number) i (number)
  ));
end;

-- Ten at one instant, five at other ones.
select pg_temp.die(10);
select pg_temp.die(1) from generate_series(1, 5);
select rdq.submit('other', 'h', 'x', error => '{"class": "PERMANENT"}');
create temporary table dead_at_first as select d.task_id, d.dead_at from rdq.dead_letters d where d.queue = 'q';
select is(count(distinct d.dead_at), 6::bigint, 'some died together') from dead_at_first d;

create temporary table shown (number integer, place bigint, task_id uuid, dead_at timestamptz);

-- Reads page after page and does something after each.
create function pg_temp.read_pages(meanwhile text, max_rows integer default 4) returns integer
language plpgsql
as $$
declare
  cursor_text text;
  pages integer := 0;
  letter record;
  rows_shown integer;
begin
  delete from shown;
  loop
    pages := pages + 1;
    rows_shown := 0;
    for letter in select * from rdq.dead_letters(queue => 'q', max_rows => read_pages.max_rows, after => cursor_text) loop
      rows_shown := rows_shown + 1;
      cursor_text := letter.page;
      insert into shown values (pages, rows_shown, letter.task_id, letter.dead_at);
    end loop;
    exit when rows_shown < max_rows;
    execute meanwhile;
  end loop;
  return pages;
end
$$;

select is(pg_temp.read_pages('select'), 4, 'fifteen in pages of four are four pages');
select results_eq(
  $$ select s.task_id from shown s order by s.number, s.place $$,
  $$ select d.task_id from dead_at_first d order by d.dead_at desc, d.task_id desc $$,
  'each once, the newest first');

select pg_temp.read_pages('select pg_temp.die(3)');
select results_eq(
  $$ select s.task_id from shown s order by s.number, s.place $$,
  $$ select d.task_id from dead_at_first d order by d.dead_at desc, d.task_id desc $$,
  'the same while new ones arrive');

select pg_temp.read_pages($$
  select rdq.redrive(s.task_id) from shown s where s.number = (select max(l.number) from shown l)
$$);
select is(
  count(distinct s.task_id), (select count(*) from shown), 'none twice while those of earlier pages are redriven')
from shown s;
select is(count(*), 15::bigint, 'and none of the first ones is left out')
from shown s
join dead_at_first d on d.task_id = s.task_id;
select ok(bool_and(s.dead_at <= s.before), 'in order')
from (select s.dead_at, lag(s.dead_at) over (order by s.number, s.place) as before from shown s) s
where s.before is not null;

select * from finish();
rollback;
