begin;
\ir ../helpers/doctor.psql
create temporary table sample (span interval, words text);
insert into sample values
  ('-5 seconds', '0 seconds'), ('0', '0 seconds'), ('0.9 seconds', '0 seconds'), ('1 second', '1 second'),
  ('119.9 seconds', '119 seconds'), ('2 minutes', '2 minutes'), ('119 minutes 59 seconds', '119 minutes'), ('2 hours', '2 hours'),
  ('47 hours', '47 hours'), ('2 days', '2 days'), ('400 days 23 hours', '400 days'), (null, null);
select plan(count(*)::integer) from sample;

select is(rdq._in_words(s.span), s.words, coalesce(s.span::text, 'null')) from sample s;

select * from finish();
rollback;
