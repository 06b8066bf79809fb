begin;
select plan(2);

select rdq.create_queue('q');
select rdq.submit('q', 'h', i.number::text, error => '{"class": "PERMANENT"}') from generate_series(1, 4) i (number);

set local timezone = 'Asia/Kathmandu';
set local datestyle = 'SQL, DMY';
select d.page
from (select l.page, row_number() over () as place from rdq.dead_letters(max_rows => 2) l) d
where d.place = 2 \gset
set local timezone = 'America/St_Johns';
set local datestyle = 'German';
select is(count(*), 2::bigint, 'the next page begins where the first one ended')
from rdq.dead_letters(after => :'page');
set local datestyle = 'Postgres, MDY';
set local timezone = 'UTC';
select is(count(*), 2::bigint, 'whatever the time zone and the style of dates') from rdq.dead_letters(after => :'page');

select * from finish();
rollback;
