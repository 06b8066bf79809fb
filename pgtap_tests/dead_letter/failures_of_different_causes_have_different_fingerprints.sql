begin;

create temporary table sample (one text[], other text[]);
insert into sample values
  ('{charge,E,m}', '{refund,E,m}'),
  ('{charge,TimeoutException,m}', '{charge,IOException,m}'),
  ('{charge,E,connection refused}', '{charge,E,connection reset}'),
  ('{charge,E,order 42 not found}', '{charge,E,order 42 not paid}'),
  ('{charge,E,user bob is unknown}', '{charge,E,user alice is unknown}'),
  ('{charge,E,can''t load it and won''t try again}', '{charge,E,can''t parse it and won''t try again}'),
  ('{charge,E,"the \"name\" is too long"}', '{charge,E,"the \"name\" is too short"}'),
  ('{charge,E,m}', '{charge,null,m}'),
  ('{charge,E,m}', '{charge,E,null}'),
  ('{charge,E,m}', '{charge,E,""}'),
  ('{charge,m,null}', '{charge,null,m}'),
  ('{charge,E,Größe}', '{charge,E,Größen}');

select plan(count(*)::integer) from sample;

select isnt(
  rdq.fingerprint(s.one[1], s.one[2], s.one[3]), rdq.fingerprint(s.other[1], s.other[2], s.other[3]),
  format('%s · %s', s.one, s.other))
from sample s;

select * from finish();
rollback;
