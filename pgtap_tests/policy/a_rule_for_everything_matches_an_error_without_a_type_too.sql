begin;
select plan(4);

select is(
  rdq._classify(null, v.error_type, '[{"match": "*", "class": "TRANSIENT"}]'), 'TRANSIENT',
  format('* matches %s', coalesce(to_json(v.error_type)::text, 'no type'))
)
from (values (null), (''), ('Down'), (E'two\nlines')) as v (error_type);

select * from finish();
rollback;
