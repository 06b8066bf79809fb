begin;
\ir ../helpers/common.psql
\ir ../helpers/doctor.psql
select plan(8);

select rdq.runner_seen('r', 'host', rdq.version(), 'v1');
select rdq.runner_seen('patched', 'host', regexp_replace(rdq.version(), '\d+$', '99'), 'v1');
select rdq.runner_seen('own', 'host', 'my own worker');
select is_empty($$ select * from rdq.doctor() $$, 'runners that know this schema, or do not say');
select rdq.runner_seen('newer', 'host', '99.1.0', 'v1');
select is(
  pg_temp.found('runner newer'),
  format('warning: it is rdq-runner 99.1.0, and the schema has version %s: upgrade the older of them', rdq.version()),
  'one that does not');
update rdq.runner r set seen_at = r.seen_at - interval '31 seconds' where r.runner = 'newer';
select is(pg_temp.found('runner newer'), null, 'gone, it does not matter');

select rdq.runner_seen('s', 'host', rdq.version(), E'v\n2');
select is(pg_temp.found('runners'), 'info: 2 code versions run at once: v 2 (1), v1 (2)', 'two code versions');
select is(d.severity, 'info', 'which is as it is in a deploy') from rdq.doctor() d;
update rdq.runner r set seen_at = r.seen_at - interval '31 seconds' where r.runner = 's';
select is(pg_temp.found('runners'), null, 'until the old ones are gone');
select rdq.runner_seen('s', 'host', rdq.version(), 'v1');
select is(pg_temp.found('runners'), null, 'the same one');
select is_empty($$ select * from rdq.doctor() $$, 'nothing else');

select * from finish();
rollback;
