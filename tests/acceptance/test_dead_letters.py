"""The night on which payments died of three causes, mended with what docs/dead-letters.md shows.

RDQ_TEST_STORY_TASKS says how many died; 2,000 by default. With ``-s`` it says how long it took.
"""

import json
import os
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg
import pytest

from rdq_runner.commands.exits import Exit
from tests.acceptance.bank import Bank
from tests.acceptance.night import OnCall, Producer, Row, Stopwatch, submit
from tests.conftest import Connection
from tests.model.invariants import assert_conserved
from tests.observability.conftest import Watched
from tests.runner.processes import RunnerProcess
from tests.waiting import wait_until

DEAD: Final = int(os.environ.get("RDQ_TEST_STORY_TASKS", "2000"))
REFUSED: Final = DEAD * 6 // 10
"""By the bank, which is down."""
YEN: Final = DEAD * 3 // 10
"""Nobody thought of the yen."""
CUT_OFF: Final = DEAD - REFUSED - YEN
"""Payloads that do not parse."""
WELL: Final = DEAD // 20

RUNNER: Final = "postgres"
"""Whom the audit names for what a runner decides: its role."""

CANARY: Final = 20
PER_SECOND: Final = 200
EDITED: Final = 3
PATIENCE_SECONDS: Final = 30 + DEAD // 50

SETTINGS: Final = '{"max_attempts": 2, "ambiguous_attempts": 2, "backoff_base": "10 ms"}'


class Evidence:
    """What the tables say, whatever the commands have printed."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def value(self, query: str, *arguments: object) -> Any:
        """Return the one value that a query gives."""
        [(value,)] = self._db.execute(query.encode(), arguments).fetchall()
        return value

    def histories(self, task_ids: list[UUID]) -> set[tuple[str, ...]]:
        """Return how the attempts at each of the tasks ended; their numbers have no holes."""
        rows = self._db.execute(
            """
            select distinct
              array_agg(a.outcome || ' ' || a.life || ' ' || a.code_version order by a.attempt_no),
              array_agg(a.attempt_no order by a.attempt_no)
            from rdq.attempt a
            where a.task_id = any (%s)
            group by a.task_id
            """,
            [task_ids],
        ).fetchall()
        for history, numbers in rows:
            assert numbers == [*range(1, len(history) + 1)]
        assert len(task_ids) == self.value(
            "select count(distinct task_id) from rdq.attempt where task_id = any (%s)", task_ids
        )
        return {tuple(history) for history, _ in rows}

    def died_of(self, error_type: str) -> list[UUID]:
        """Return the tasks with an attempt that failed so."""
        rows = self._db.execute(
            "select distinct task_id from rdq.attempt where error_type like %s", [f"%{error_type}"]
        ).fetchall()
        return [task_id for (task_id,) in rows]

    def dead(self, task_ids: list[UUID], life: int) -> int:
        """Return how many of the tasks are dead after so many redrives."""
        query = "select count(*) from rdq.dead where task_id = any (%s) and life = %s"
        return int(self.value(query, task_ids, life))

    def audited(self, redrive_id: str) -> list[tuple[str, str, int, str | None]]:
        """Return what the audit has of a bulk redrive: actor, action, how many, why."""
        return self._db.execute(
            "select actor, action, affected, reason from rdq.audit_log"
            " where redrive_id = %s order by id",
            [redrive_id],
        ).fetchall()


@dataclass
class Night:
    """Where the story is played."""

    db: Connection
    dsn: str
    bank: Bank
    ada: OnCall
    evidence: Evidence
    watch: Stopwatch
    deploy: Callable[[str], Watched]


@pytest.fixture
def tonight(
    db: Connection, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Night]:
    db.execute("select rdq.create_queue('payments', %s)", [SETTINGS])
    with ExitStack() as stack:
        bank = stack.enter_context(Bank())
        monkeypatch.setenv("BANK_PORT", str(bank.port))
        runners: list[RunnerProcess] = []

        def deploy(version: str) -> Watched:
            for runner in runners:
                assert runner.stop() == 0
            options = ["--handlers", f"tests.acceptance.payments:{version}", "--metrics-port=0"]
            options += [f"--code-version={version}", "--poll-interval=0.5", "--concurrency=16"]
            runners[:] = [
                stack.enter_context(RunnerProcess(database, tmp_path, *options, queue="payments"))
                for _ in range(2)
            ]
            return Watched(runners[0])

        yield Night(db, database, bank, OnCall(database, "ada"), Evidence(db), Stopwatch(), deploy)


@pytest.mark.slow
@pytest.mark.timeout(300 + DEAD // 50)
def test_a_night_with_three_causes_ends_with_every_payment_accounted_for(tonight: Night) -> None:
    runner = die_of_three_causes(tonight)
    groups = see_the_three_groups(tonight)
    bring_the_bank_back(tonight)
    redrive_what_the_bank_refused(tonight, groups["ConnectionRefusedError"])
    redrive_id = redrive_the_bug_too_early(tonight, groups["KeyError"], runner)
    deploy_the_fix_and_go_on(tonight, groups["KeyError"], redrive_id)
    edit_some_and_purge_the_others(tonight, groups["MalformedPayload"])
    look_back(tonight)


def die_of_three_causes(tonight: Night) -> Watched:
    submit(tonight.db, "payout", '{"order": %s, "amount": 10, "currency": "EUR"}', WELL)
    submit(tonight.db, "charge", '{"order": %s, "amount": 10}', REFUSED)
    submit(tonight.db, "payout", '{"order": %s, "amount": 10, "currency": "JPY"}', YEN)
    submit(tonight.db, "charge", '{"order": %s, "amount": ', CUT_OFF)
    runner = tonight.deploy("v1")
    count = "select count(*) from rdq.dead"
    wait_until(lambda: tonight.evidence.value(count) == DEAD, PATIENCE_SECONDS)
    tonight.watch.lap(f"{DEAD} died")
    return runner


def see_the_three_groups(tonight: Night) -> dict[str, Row]:
    rows = tonight.ada.rows("dlq", "groups", "--queue", "payments")
    groups = {row["error_type"].rpartition(".")[2]: row for row in rows}
    seen = {name: (g["count"], g["error_classes"], g["dead_reasons"]) for name, g in groups.items()}
    assert seen == {
        "ConnectionRefusedError": (REFUSED, ["TRANSIENT"], ["EXHAUSTED"]),
        "KeyError": (YEN, ["AMBIGUOUS"], ["AMBIGUOUS"]),
        "MalformedPayload": (CUT_OFF, ["PERMANENT"], ["PERMANENT"]),
    }
    for name, group in groups.items():
        assert group["code_versions"] == ["v1"]
        assert group["growing"]
        assert group["share"] == pytest.approx(group["count"] / DEAD)
        assert group["count"] == len(tonight.evidence.died_of(name))
    in_psql = tonight.ada.psql("select fingerprint, count from rdq.dead_letter_groups('payments')")
    assert in_psql == [[row["fingerprint"], str(row["count"])] for row in rows]
    timeline = tonight.ada.rows(
        "dlq", "timeline", "--queue", "payments", "--bucket", "5m", "--since", "3h"
    )
    assert sum(row["count"] for row in timeline) == DEAD
    sample = groups["KeyError"]["sample_task_id"]
    history = tonight.ada.rows("dlq", "history", sample)
    assert [(a["attempt_no"], a["outcome"]) for a in history] == [(1, "FAILED"), (2, "FAILED")]
    assert "payments.py" in history[1]["stack"]
    tonight.watch.lap("seen")
    return groups


def bring_the_bank_back(tonight: Night) -> None:
    tonight.ada.row("queue", "pause", "payments", "--reason", "the bank is down")
    [waiting] = submit(tonight.db, "charge", '{"order": %s, "amount": 10}', 1)
    tonight.bank.open()
    status = "select status from rdq.tasks where task_id = %s"
    assert tonight.evidence.value(status, waiting) == "PENDING"
    tonight.ada.psql("select rdq.resume_queue('payments')")
    wait_until(lambda: tonight.evidence.value(status, waiting) == "SUCCEEDED")


def redrive_what_the_bank_refused(tonight: Night, group: Row) -> None:
    which = ["--queue", "payments", "--fingerprint", group["fingerprint"]]
    shown = tonight.ada.document("dlq", "redrive", *which, "--dry-run", exits=Exit.WOULD_CHANGE)
    assert (shown["matched"], shown["warnings"]) == (REFUSED, [])
    refused = tonight.evidence.died_of("ConnectionRefusedError")
    before = len(tonight.bank.paid)

    producer = Producer(tonight.dsn)
    pace = ["--canary", CANARY, "--per-second", PER_SECOND, "--reason", "the bank is back"]
    with producer.busy():
        tonight.watch.lap("the bank is back")
        end = tonight.ada.row("dlq", "redrive", *which, *pace, "--watch", "--yes")
    tonight.watch.lap(f"{REFUSED} charges are redriven, {PER_SECOND} a second")

    assert counts(end) == ("DONE", REFUSED, REFUSED, REFUSED, 0, 0)
    # The last of the fresh ones was submitted a moment ago.
    left = "select count(*) from rdq.tasks where task_id = any (%s) and status <> 'SUCCEEDED'"
    wait_until(lambda: tonight.evidence.value(left, producer.submitted) == 0)
    once = ("FAILED 0 v1", "FAILED 0 v1", "SUCCEEDED 1 v1")
    assert tonight.evidence.histories(refused) == {once}
    assert tonight.evidence.audited(end["redrive_id"]) == [
        ("ada", "redrive_where", REFUSED, "the bank is back"),
        (RUNNER, "finish_redrive", REFUSED, None),
    ]
    check_the_pace(tonight, refused)
    assert sorted(tonight.bank.paid[before:]) == sorted([*refused, *producer.submitted])
    check_that_fresh_ones_were_served(tonight, refused, producer.submitted)


def check_that_fresh_ones_were_served(
    tonight: Night, redriven: list[UUID], fresh: list[UUID]
) -> None:
    """Check that who came meanwhile did not wait for the redrive: half of it is time enough."""
    assert len(fresh) > 10
    assert tonight.evidence.histories(fresh) == {("SUCCEEDED 0 v1",)}
    slowest = tonight.evidence.value(
        "select max(extract(epoch from finished_at - created_at)) from rdq.tasks"
        " where task_id = any (%s)",
        fresh,
    )
    print(f"          the slowest of {len(fresh)} fresh ones took {slowest:.2f} s")
    late = tonight.evidence.value(
        """
        select count(*) filter (where t.finished_at > r.ended_at) || ' of ' || count(*)
        from (
          select min(started_at) as began_at, max(started_at) as ended_at
          from rdq.attempt
          where task_id = any (%s) and life = 1
        ) r
        join rdq.tasks t on t.created_at < r.began_at + (r.ended_at - r.began_at) / 2
        where t.task_id = any (%s)
        """,
        redriven,
        fresh,
    )
    assert re.fullmatch(r"0 of [1-9]\d*", late)


def check_the_pace(tonight: Night, task_ids: list[UUID]) -> None:
    """Check that the canary had come back when the rest began, and how long the rest took."""
    attempts = tonight.db.execute(
        "select started_at, finished_at from rdq.attempt"
        " where task_id = any (%s) and life = 1 order by started_at",
        [task_ids],
    ).fetchall()
    canary, rest = attempts[:CANARY], attempts[CANARY:]
    decided_at = max(finished_at for _, finished_at in canary)
    assert decided_at < rest[0][0]
    took = (rest[-1][0] - decided_at).total_seconds()
    assert took > 0.9 * len(rest) / PER_SECOND


def redrive_the_bug_too_early(tonight: Night, group: Row, runner: Watched) -> str:
    which = ["--queue", "payments", "--fingerprint", group["fingerprint"]]
    shown = tonight.ada.document("dlq", "redrive", *which, "--dry-run", exits=Exit.WOULD_CHANGE)
    assert shown["matched"] == YEN
    assert [warning.partition(" ")[0] for warning in shown["warnings"]] == [str(YEN)] * 2
    assert "AMBIGUOUS" in shown["warnings"][0]
    assert "under code version v1, which is still the newest" in shown["warnings"][1]

    yen = tonight.evidence.died_of("KeyError")
    pace = ["--canary", CANARY, "--per-second", PER_SECOND, "--reason", "it may work now"]
    with psycopg.connect(tonight.dsn, autocommit=True) as listener:
        listener.execute("listen rdq_redrive")
        end = tonight.ada.row(
            "dlq", "redrive", *which, *pace, "--watch", "--yes", exits=Exit.STOPPED
        )
        [notice] = listener.notifies(timeout=10, stop_after=1)
    redrive_id = str(end["redrive_id"])
    assert json.loads(notice.payload)["redrive_id"] == redrive_id
    assert json.loads(notice.payload)["state"] == "HALTED"

    wait_until(lambda: listed(tonight.ada, redrive_id)["undecided"] == 0)
    canary = listed(tonight.ada, redrive_id)
    assert counts(canary) == ("HALTED", YEN, CANARY, 0, CANARY, 0)
    assert canary["state_reason"].endswith(f" of a canary of {CANARY} died again")
    assert tonight.evidence.dead(yen, life=1) == CANARY
    assert tonight.evidence.dead(yen, life=0) == YEN - CANARY
    assert tonight.evidence.histories(yen) == {
        ("FAILED 0 v1",) * 2,
        ("FAILED 0 v1",) * 2 + ("FAILED 1 v1",) * 2,
    }
    began, halted = tonight.evidence.audited(redrive_id)
    assert began == ("ada", "redrive_where", YEN, "it may work now")
    assert halted == (RUNNER, "halt_redrive", YEN - CANARY, canary["state_reason"])
    runner.site.wait_for(1, "rdq_redrives", state="HALTED")
    found = tonight.ada.document("doctor", exits=Exit.FOUND)
    assert f"redrive {redrive_id}" in {finding["subject"] for finding in found}
    tonight.watch.lap(f"{YEN} payouts are redriven too early, and it halts")
    return redrive_id


def deploy_the_fix_and_go_on(tonight: Night, group: Row, redrive_id: str) -> None:
    yen = tonight.evidence.died_of("KeyError")
    tonight.deploy("v2")
    why = ["--reason", "fixed in v2"]
    tonight.ada.row("redrive", "resume", redrive_id, *why, "--yes")
    end = tonight.ada.row("redrive", "watch", redrive_id, exits=Exit.DIED_AGAIN)
    assert counts(end) == ("DONE", YEN, YEN, YEN - CANARY, CANARY, 0)
    assert tonight.evidence.audited(redrive_id)[2:] == [
        ("ada", "resume_redrive", 1, "fixed in v2"),
        (RUNNER, "finish_redrive", YEN, None),
    ]
    # The canary is dead, and of another version; it is redriven again.
    [left] = tonight.ada.rows(
        "dlq", "groups", "--queue", "payments", "--fingerprint", group["fingerprint"]
    )
    assert left["count"] == CANARY
    which = ["--queue", "payments", "--fingerprint", group["fingerprint"]]
    last = tonight.ada.row("dlq", "redrive", *which, "--canary", 1, "--watch", "--yes", *why)
    assert counts(last) == ("DONE", CANARY, CANARY, CANARY, 0, 0)
    failed = ("FAILED 0 v1",) * 2
    assert tonight.evidence.histories(yen) == {
        (*failed, "SUCCEEDED 1 v2"),
        (*failed, "FAILED 1 v1", "FAILED 1 v1", "SUCCEEDED 2 v2"),
    }
    tonight.watch.lap(f"{YEN} payouts are redriven with the fix")


def edit_some_and_purge_the_others(tonight: Night, group: Row) -> None:
    which = ["--queue", "payments", "--fingerprint", group["fingerprint"]]
    rows = tonight.ada.rows("dlq", "list", *which)
    mended = [UUID(row["task_id"]) for row in rows[:EDITED]]
    for task_id in mended[1:]:
        cut_off = tonight.ada.text("dlq", "show", task_id, "--payload")
        why = ["--reason", "completed by hand"]
        tonight.ada.row("dlq", "redrive", task_id, "--payload", f"{cut_off}10}}", *why)
    [[status, _, redrives]] = tonight.ada.psql(
        f"select * from rdq.redrive('{mended[0]}', payload => '{{\"order\": 1, \"amount\": 10}}',"
        " reason => 'completed by hand')"
    )
    assert (status, redrives) == ("PENDING", "1")
    wait_until(lambda: {*tonight.bank.paid} >= {*mended})
    for task_id in mended:
        [(actor, action, before, after)] = tonight.db.execute(
            "select actor, action, before, after from rdq.audit_log where task_id = %s", [task_id]
        ).fetchall()
        assert (actor, action) == ("ada", "redrive")
        assert b64decode(before["payload"]).endswith(b'"amount": ')
        assert json.loads(b64decode(after["payload"]))["amount"] == 10

    others = CUT_OFF - EDITED
    shown = tonight.ada.document("dlq", "purge", *which, "--dry-run", exits=Exit.WOULD_CHANGE)
    assert (shown["purged"], shown["remaining"]) == (0, others)
    gone = tonight.ada.row("dlq", "purge", *which, "--yes", "--reason", "sent again by the shop")
    assert (gone["purged"], gone["remaining"]) == (others, 0)
    purged = tonight.evidence.value(
        "select sum(affected) from rdq.audit_log where action = 'purge_where'"
        " and actor = 'ada' and filter ->> 'fingerprint' = %s",
        group["fingerprint"],
    )
    assert purged == others
    assert tonight.evidence.histories(mended) == {("FAILED 0 v1", "SUCCEEDED 1 v2")}
    assert sorted(tonight.evidence.died_of("MalformedPayload")) == sorted(mended)
    tonight.watch.lap(f"{EDITED} are edited, {others} purged")


def look_back(tonight: Night) -> None:
    assert tonight.ada.rows("dlq", "groups", "--queue", "payments") == []
    assert {finding["severity"] for finding in tonight.ada.document("doctor")} <= {"info"}
    audited = tonight.ada.rows("audit", "--queue", "payments", "--since", "8h")
    assert [row["action"] for row in reversed(audited)] == [
        "create_queue",
        "pause_queue",
        "resume_queue",
        "redrive_where",
        "finish_redrive",
        "redrive_where",
        "halt_redrive",
        "resume_redrive",
        "finish_redrive",
        "redrive_where",
        "finish_redrive",
        *["redrive"] * EDITED,
        *["purge_where"] * -(-(CUT_OFF - EDITED) // 10000),
    ]
    states = tonight.db.execute("select status, count(*) from rdq.tasks group by status").fetchall()
    came = tonight.evidence.value("select count(distinct task_id) from rdq.attempt")
    assert states == [("SUCCEEDED", came)]
    assert_conserved(tonight.db)


def listed(ada: OnCall, redrive_id: str) -> Row:
    """Return a bulk redrive from the list."""
    [row] = [row for row in ada.rows("redrive", "list") if row["redrive_id"] == redrive_id]
    return row


def counts(row: Row) -> tuple[Any, ...]:
    """Return state, matched, sent, succeeded, died and skipped."""
    return tuple(row[k] for k in ("state", "matched", "sent", "succeeded", "died", "skipped"))
