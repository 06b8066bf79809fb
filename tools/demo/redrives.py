"""Acts 5 to 8: what died is found, mended and redriven. What an act tells, it also checks."""

from uuid import UUID

from tools.demo.failures import Cast
from tools.demo.screen import heading, say
from tools.demo.stage import Process, Stage, check


def play(stage: Stage, cast: Cast) -> None:
    """Mend all that failed.

    :raises NotAsTold: something happened otherwise.
    """
    _browse_the_dead_letters(stage, cast)
    _redrive_one_with_an_edited_payload(stage, cast.shipment)
    _deploy_the_fix(stage, cast.runner)
    _redrive_the_others(stage, dead=1 + len(cast.prices))
    _look_back(stage, [cast.receipts[0], cast.shipment, cast.picture, cast.prices[0]])


def _browse_the_dead_letters(stage: Stage, cast: Cast) -> None:
    heading("5. The dead letters, as somebody on call finds them")
    dead = stage.run(
        """\
select task_id, handler, dead_reason, message, attempts
from rdq.dead_letters"""
    )
    check(
        "the dead letters",
        {row[0]: (row[2], row[4]) for row in dead},
        {
            cast.shipment: ("PERMANENT", 1),
            cast.picture: ("VANISHED", 3),
            **dict.fromkeys(cast.prices, ("AMBIGUOUS", 3)),
        },
    )
    say("By cause. Numbers, ids and quoted values in a message do not make it another one:")
    groups = stage.run(
        """\
select handler, error_type, count, code_versions, sample_message
from rdq.dead_letter_groups()"""
    )
    check("the groups", {row[0]: row[2] for row in groups}, {"price": 3, "resize": 1, "ship": 1})
    say("The history of one of them. Attempt 1 is the consumer's, before rdq had the task:")
    history = stage.run(
        f"""\
select attempt_no, outcome, error_class, error_type, message, runner, code_version
from rdq.history('{cast.prices[0]}')"""
    )
    check("who tried", [row[5] for row in history], [None, "orders-1", "orders-1"])
    say("And where in the code it failed:")
    stage.run(f"select stack from rdq.history('{cast.prices[0]}') where attempt_no = 3")


def _redrive_one_with_an_edited_payload(stage: Stage, shipment: UUID) -> None:
    heading("6. A payload was wrong: it is edited, and the task redriven")
    stage.run(
        f"""\
select convert_from(decode(envelope ->> 'payload', 'base64'), 'UTF8') as payload
from rdq.envelope('{shipment}')"""
    )
    say("A redrive gives the same task a new life: a fresh budget, while its history goes on.")
    stage.run("set rdq.actor = 'ada'")
    stage.run(
        f"""\
select status, redrive_count
from rdq.redrive('{shipment}',
  payload => '{{"order": 2001, "address": "12 Main Street"}}', reason => 'asked the customer')"""
    )
    stage.wait_for("SUCCEEDED", "it has succeeded", handler="ship")
    check("the attempts at the shipment", stage.outcomes(shipment), ["FAILED", "SUCCEEDED"])


def _deploy_the_fix(stage: Stage, runner: Process) -> None:
    heading("7. The code was wrong: it is fixed, and the others are redriven in bulk")
    say("Release 2 knows the currencies, and resizes a tile at a time. It is deployed:")
    stage.stop_runner(runner)
    stage.start_runner("shop-2", "orders", "images", release=2)


def _redrive_the_others(stage: Stage, dead: int) -> None:
    say("What would be redriven?")
    [dry_run] = stage.run(
        """\
select state, matched, sent
from rdq.redrive_where(since => now() - interval '1 hour', dry_run => true)"""
    )
    check("the dry run", dry_run, ("DRY_RUN", dead, 0))
    check("the dead after it", stage.ask("select count(*) from rdq.dead_letters"), dead)
    say("Just these. Their starts are spread, so that they do not come all at once:")
    [redrive] = stage.run(
        """\
select state, matched, sent, skipped
from rdq.redrive_where(since => now() - interval '1 hour', spread => '1 second',
  reason => 'fixed in release 2')"""
    )
    check("the redrive", redrive, ("DONE", dead, dead, 0))
    stage.wait_for("SUCCEEDED", "the prices are known", handler="price")
    stage.wait_for("SUCCEEDED", "the picture is resized", handler="resize")


def _look_back(stage: Stage, examples: list[UUID]) -> None:
    heading("8. The end: all succeeded, and nothing is forgotten")
    tasks = stage.run(
        """\
select handler, status, count(*), sum(redrive_count) as redrives
from rdq.tasks
group by handler, status
order by min(created_at)"""
    )
    check(
        "the end",
        tasks,
        [
            ("send_receipt", "SUCCEEDED", 3, 0),
            ("ship", "SUCCEEDED", 1, 1),
            ("resize", "SUCCEEDED", 1, 1),
            ("price", "SUCCEEDED", 3, 3),
        ],
    )
    say("Every attempt at one task of each kind:")
    ids = ",\n  ".join(f"'{task_id}'" for task_id in examples)
    attempts = stage.run(
        f"""\
select tasks.handler, attempt_no, life, outcome, error_class, history.runner, code_version
from rdq.tasks
cross join rdq.history(task_id)
where task_id in (
  {ids}
)
order by created_at, attempt_no"""
    )
    check(
        "the attempts",
        [row[:4] for row in attempts if row[0] != "send_receipt"],
        [
            ("ship", 1, 0, "FAILED"),
            ("ship", 2, 1, "SUCCEEDED"),
            ("resize", 1, 0, "LEASE_EXPIRED"),
            ("resize", 2, 0, "LEASE_EXPIRED"),
            ("resize", 3, 0, "LEASE_EXPIRED"),
            ("resize", 4, 1, "SUCCEEDED"),
            ("price", 1, 0, "FAILED"),
            ("price", 2, 0, "FAILED"),
            ("price", 3, 0, "FAILED"),
            ("price", 4, 1, "SUCCEEDED"),
        ],
    )
    say("What people did, and why:")
    actions = stage.run(
        """\
select actor, action, queue, affected, reason
from rdq.audit_log
where action like 'redrive%'
order by id"""
    )
    check(
        "the audit",
        actions,
        [
            ("ada", "redrive", "orders", 1, "asked the customer"),
            ("ada", "redrive_where", "images", 1, "fixed in release 2"),
            ("ada", "redrive_where", "orders", 3, "fixed in release 2"),
        ],
    )
    say("And is anything wrong with this installation?")
    check(
        "the doctor's findings",
        stage.run("select * from rdq.doctor() where severity <> 'info'"),
        [],
    )
