begin;
select plan(26);

create temp table rules as
select '[
  {"match": "ConnectionRefused", "class": "TRANSIENT"},
  {"match": "Http4??", "class": "PERMANENT"},
  {"match": "*Timeout", "class": "AMBIGUOUS"},
  {"match": "db.*", "class": "TRANSIENT"},
  {"match": "db.constraint.*", "class": "PERMANENT"},
  {"match": "100%_sure", "class": "PERMANENT"},
  {"match": "back\\slash", "class": "PERMANENT"},
  {"match": "[a-z]", "class": "TRANSIENT"}
]'::jsonb as rules;

select is(
  rdq._classify(v.explicit, v.error_type, r.rules), v.class,
  format('%s, said to be %s', coalesce(v.error_type, 'no type'), coalesce(v.explicit, 'nothing'))
)
from rules r
cross join (
  values
    -- The worker's word wins over every rule.
    ('PERMANENT', 'ConnectionRefused', 'PERMANENT'),
    ('TRANSIENT', 'Http404', 'TRANSIENT'),
    ('AMBIGUOUS', 'ConnectionRefused', 'AMBIGUOUS'),
    ('TRANSIENT', null, 'TRANSIENT'),
    ('PERMANENT', 'SomethingElse', 'PERMANENT'),
    -- A glob is matched against the whole type, as it is written.
    (null, 'ConnectionRefused', 'TRANSIENT'),
    (null, 'connectionrefused', 'AMBIGUOUS'),
    (null, 'ConnectionRefusedError', 'AMBIGUOUS'),
    (null, 'Http404', 'PERMANENT'),
    (null, 'Http4', 'AMBIGUOUS'),
    (null, 'Http4040', 'AMBIGUOUS'),
    (null, 'Timeout', 'AMBIGUOUS'),
    -- The first rule that matches decides, not the most exact one.
    (null, 'db.deadlock', 'TRANSIENT'),
    (null, 'db.constraint.unique', 'TRANSIENT'),
    (null, 'db.Timeout', 'AMBIGUOUS'),
    (null, 'db.', 'TRANSIENT'),
    (null, 'db', 'AMBIGUOUS'),
    -- Characters that mean something to LIKE or to a regular expression mean themselves.
    (null, '100%_sure', 'PERMANENT'),
    (null, '100 per cent sure', 'AMBIGUOUS'),
    (null, '100%xsure', 'AMBIGUOUS'),
    (null, E'back\\slash', 'PERMANENT'),
    (null, 'backslash', 'AMBIGUOUS'),
    (null, '[a-z]', 'TRANSIENT'),
    (null, 'q', 'AMBIGUOUS'),
    -- What nothing classifies.
    (null, '', 'AMBIGUOUS'),
    (null, 'SomethingElse', 'AMBIGUOUS')
) as v (explicit, error_type, class);

select * from finish();
rollback;
