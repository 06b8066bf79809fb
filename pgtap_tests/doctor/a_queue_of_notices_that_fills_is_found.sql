begin;
\ir ../helpers/doctor.psql
select plan(3);

select is_empty($$ select * from rdq._doctor_notices(0.25) $$, 'there is room');
select is(
  d.severity || ': ' || d.finding,
  'warning: the queue of notices is full to 26 %: a session listens and does not read, since it is in a long transaction',
  'it fills')
from rdq._doctor_notices(0.26) d;
select lives_ok((select d.advice from rdq._doctor_notices(1) d), 'the advice can be pasted');

select * from finish();
rollback;
