"""A runner can be seen in the database while it lives, and it does not matter to its work."""

from importlib.metadata import version

from tests.observability.conftest import Watch
from tests.runner.conftest import Hold, Queue, Run
from tests.waiting import wait_until


def runners(queue: Queue) -> list[str]:
    """Return the names of the runners that are alive."""
    return [name for (name,) in queue.db.execute("select runner from rdq.runners where alive")]


def test_a_runner_says_what_it_is_while_it_lives(queue: Queue, run: Run) -> None:
    runner = run("--name", "r1", "--code-version", "v7", "--concurrency", "3")
    wait_until(lambda: runners(queue) == ["r1"])
    row = queue.db.execute(
        "select version, code_version, queues, concurrency, in_flight, unreported, host <> ''"
        " from rdq.runners"
    ).fetchone()
    assert row == (version("rdq-runner"), "v7", ["q"], 3, 0, 0, True)
    runner.stop()
    assert runners(queue) == []


def test_the_row_is_renewed_with_what_the_runner_does(queue: Queue, run: Run, hold: Hold) -> None:
    run()
    wait_until(lambda: runners(queue))
    queue.submit("hold", **hold.payload)
    wait_until(lambda: queue.db.execute("select 1 from rdq.runners where in_flight = 1").fetchone())


def test_a_killed_runner_leaves_a_row_that_tells_when_it_was_seen(queue: Queue, run: Run) -> None:
    runner = run()
    wait_until(lambda: runners(queue))
    runner.kill()
    assert len(runners(queue)) == 1
    queue.db.execute("update rdq.runner set seen_at = now() - interval '1 minute'")
    assert runners(queue) == []


def test_a_runner_that_cannot_be_registered_works_and_says_so_once(
    queue: Queue, watch: Watch
) -> None:
    queue.db.execute("alter function rdq.runner_seen rename to seen_away")
    watched = watch()
    watched.process.wait_for("runner is not registered")
    queue.wait_for("SUCCEEDED", queue.submit("ok"))
    assert watched.site.scrape().values_of("rdq_database_outages_total") == [0]
    queue.db.execute("alter function rdq.seen_away rename to runner_seen")
    wait_until(lambda: len(runners(queue)) == 1)
    assert watched.process.stop() == 0
    warnings = [e["event"] for e in watched.process.events if e["level"] != "info"]
    assert warnings == ["runner is not registered"]
