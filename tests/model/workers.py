"""What workers do, also with claims that they have lost."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import rule
from psycopg.types.json import Jsonb

from tests.model.database import Claim
from tests.model.model import BATCH_WAIT, DAY, Attempt, Task, Window
from tests.model.world import MINUTE, PICK, QUEUES, World, chosen

CHOSEN = st.sampled_from([["exact"], ["spread"], ["exact", "spread"]])
CLASSES = st.sampled_from(["TRANSIENT", "TRANSIENT", "TRANSIENT", "PERMANENT", "AMBIGUOUS", None])
FAILURES = st.fixed_dictionaries(
    {"class": CLASSES},
    optional={"retry_after": st.sampled_from([0, 90, 10**12, "nonsense", None])},
)
REPORT = st.one_of(st.none(), FAILURES, FAILURES)
CLAIM = """
select task_id, claim_token, attempt_no, attempt_count, redrive_count
from rdq.claim(%s, 'worker', %s)
"""
FAIL = "select * from rdq.fail(%s, %s, 'Error', error_class => %s, retry_after => %s)"


class Workers(World):
    @rule(
        queues=CHOSEN,
        reports=st.lists(REPORT | st.just("later"), min_size=1, max_size=4),
        wait=st.sampled_from([True, True, False]),
    )
    def work(self, queues: list[str], reports: list[Any], wait: bool) -> None:
        """Claim, now or when something is due, and report some of it at once."""
        if wait:
            self.wait_until_due(queues)
        claims = self.claim(queues, len(reports))
        now = [(c, r) for c, r in zip(claims, reports, strict=False) if r != "later"]
        if now:
            self.each_task_is_as_the_model_says()
            self.report(now)

    def claim(self, queues: list[str], max_tasks: int) -> list[Claim]:
        rows, now = self.database.timed(CLAIM, queues, max_tasks)
        seen = self.database.seen()
        self.check_reclaimed(queues, max_tasks, now, seen)
        opened = [queue for queue in queues if not self.model.queues[queue].paused]
        ready = {queue: self.model.ready(queue, now) for queue in opened}
        lost = [t for q in opened for t in ready[q] if not t.runnable(self.model.queues[q], now)]
        for task in lost:
            if seen[task.id].status == "DEAD":
                too_late = task.give_up is not None and task.give_up.low <= now.high
                task.bury("DEADLINE" if too_late else "EXHAUSTED", now)
        taken = [row[0] for row in rows]
        assert len(set(taken)) == len(taken) <= max_tasks
        self.check_choice(ready, lost, taken, max_tasks)
        for task_id, token, attempt_no, attempt_count, redrive_count in rows:
            task = self.model.tasks[task_id]
            assert attempt_no == len(task.attempts) + 1
            assert attempt_count == task.spent(self.model.settings(task)) + 1
            assert redrive_count == task.life
            task.hold(token, now + self.model.settings(task).lease)
        claims = [Claim(row[0], row[1]) for row in rows]
        self.claims += claims
        return claims

    def some_claims(self, picks: list[int]) -> list[Claim]:
        """Choose claims, most of the time such as still hold their task; make some if none does."""
        held = self.held() or self.hold(len(picks))
        return [chosen(held, self.claims, pick) for pick in picks if self.claims]

    def hold(self, max_tasks: int) -> list[Claim]:
        """Let time pass until something is due, and claim it."""
        self.wait_until_due(list(QUEUES))
        claims = self.claim(list(QUEUES), max_tasks)
        self.each_task_is_as_the_model_says()
        return claims

    def held(self) -> list[Claim]:
        return [claim for claim in self.claims if self.model.held(*claim)]

    def wait_until_due(self, queues: list[str]) -> None:
        """Let time pass until one of the tasks that wait is due."""
        due = [t.due.high for t in self.model.with_status("PENDING", queues) if t.due]
        if due:
            self.pass_time_until(min(due))

    def check_choice(
        self,
        ready: dict[str, list[Task]],
        lost: Sequence[Task],
        taken: Sequence[UUID],
        max_tasks: int,
    ) -> None:
        """Check that a claim took what it should of the tasks that were ready."""
        runnable = {q: [t for t in tasks if t not in lost] for q, tasks in ready.items()}
        count = sum(len(tasks) for tasks in runnable.values())
        if lost:
            # Those that it buries are in its way, but it goes on until it has one to hand out.
            assert bool(taken) == bool(count)
        else:
            assert len(taken) == min(max_tasks, count)
        for queue, tasks in runnable.items():
            chosen = [task.due for task in tasks if task.id in taken]
            assert chosen == [task.due for task in tasks[: len(chosen)]]
            if not lost:
                assert len(chosen) >= min(len(tasks), max_tasks // len(ready)), queue
        assert {task.id for tasks in runnable.values() for task in tasks} >= set(taken)

    @rule(batch=st.lists(st.tuples(PICK, REPORT), min_size=1, max_size=6))
    def report_any(self, batch: list[tuple[int, dict[str, Any] | None]]) -> None:
        claims = self.some_claims([pick for pick, _ in batch])
        reports = [(c, failure) for c, (_, failure) in zip(claims, batch, strict=False)]
        if len(reports) > 1:
            self.report(reports)
        elif reports:
            self.report_one(*reports[0])

    def report_one(self, claim: Claim, failure: dict[str, Any] | None) -> None:
        if failure is None:
            [(counted,)], now = self.database.timed("select rdq.complete(%s, %s)", *claim)
            assert self.end([claim], [None], now) == [not counted]
            return
        seconds = failure.get("retry_after")
        retry_after = timedelta(seconds=min(seconds, 10**9)) if isinstance(seconds, int) else None
        [answer], now = self.database.timed(FAIL, *claim, failure["class"], retry_after)
        assert self.end([claim], [failure], now) == [answer[3]]
        self.check_answer(claim.task_id, *answer)

    def report(self, batch: list[tuple[Claim, dict[str, Any] | None]]) -> None:
        claims, failures = [claim for claim, _ in batch], [failure for _, failure in batch]
        told = [None if failure is None else Jsonb(failure) for failure in failures]
        query = "select * from rdq.report(%s, %s, %s::jsonb[])"
        answers, now = self.database.timed(query, *arrays(claims), told)
        assert [answer[0] for answer in answers] == [claim.task_id for claim in claims]
        assert self.end(claims, failures, now) == [answer[4] for answer in answers]
        for answer in answers:
            self.check_answer(*answer[:5])

    @rule(
        picks=st.lists(PICK, min_size=1, max_size=4),
        delay=st.sampled_from([0, 120, 10**9, None, None]),
        lease=st.sampled_from([None, 10 * MINUTE]),
    )
    def release_or_keep(self, picks: list[int], delay: int | None, lease: timedelta | None) -> None:
        batch = self.some_claims(picks)
        if delay is None:
            self.heartbeat(batch, lease)
        else:
            self.release(batch, delay)

    def release(self, batch: list[Claim], delay: int) -> None:
        query = "select rdq.release(%s, %s, 'test', make_interval(secs => %s))"
        rows, now = self.database.timed(query, *arrays(batch), delay)
        held = {claim for claim in batch if self.model.held(*claim)}
        assert sorted(row[0] for row in rows) == sorted(claim.task_id for claim in held)
        for claim in batch:
            if task := self.model.held(*claim):
                released = Attempt(task.life, "RELEASED")
                not_before = now + min(timedelta(seconds=delay), DAY)
                task.conclude(released, self.model.settings(task), now, not_before)
            elif claim not in held and (task := self.model.tasks.get(claim.task_id)):
                task.note_late(claim.token, "RELEASED")

    def heartbeat(self, batch: list[Claim], lease: timedelta | None) -> None:
        query = "select rdq.heartbeat(%s, %s, %s)"
        rows, now = self.database.timed(query, *arrays(batch), lease)
        held = [task for claim in set(batch) if (task := self.model.held(*claim))]
        assert sorted(row[0] for row in rows) == sorted(task.id for task in held)
        for task in held:
            assert task.expires
            extended = now + (lease or self.model.settings(task).lease)
            task.expires = task.expires.or_later(extended)

    @rule(
        queues=CHOSEN,
        max_tasks=st.integers(0, 3),
        wait=st.sampled_from([None, None, None, MINUTE, 15 * MINUTE, 3 * DAY]),
    )
    def sweep(self, queues: list[str], max_tasks: int, wait: timedelta | None) -> None:
        """Let time pass, until a lease has ended or longer; reclaim, or do all that is periodic."""
        if wait:
            self.pass_time(wait)
        elif self.held() or self.hold(max_tasks + 1):
            held = self.model.with_status("IN_FLIGHT", QUEUES)
            self.pass_time_until(min(t.expires.high for t in held if t.expires))
        if max_tasks == 0:
            self.tick()
            return
        query = "select task_id, status from rdq.reclaim(%s, %s)"
        rows, now = self.database.timed(query, max_tasks, queues)
        reclaimed = self.check_reclaimed(queues, max_tasks, now, self.database.seen())
        assert {row[0] for row in rows} == reclaimed
        assert all(self.model.tasks[row[0]].status == row[1] for row in rows)

    def tick(self) -> None:
        [counts], now = self.database.timed(
            "select reclaimed, given_up, redriven, purged, problems from rdq.tick()"
        )
        assert counts[4] is None
        # Where the walks over tickets are short, as here, it leaves that out.
        self.database.rows("select rdq._raise_low_water(%s, worth => '0')", list(QUEUES))
        seen = self.database.seen()
        redriven = [
            task
            for task in self.model.with_status("DEAD", QUEUES)
            if task.id in seen and seen[task.id].redrive_count == task.life + 1
        ]
        for task in redriven:
            assert any(rest.get(task.id) == task.life for rest in self.model.redrives)
            self.model.free(task.queue, task.key, now)
            assert not self.model.holder(task.queue, task.key)
            self.live_again(task, now)
        reclaimed = self.check_reclaimed(QUEUES, 1000, now, seen)
        given_up = [t for t in self.model.with_status("PENDING", QUEUES) if past(t.give_up, now)]
        for task in given_up:
            task.bury("DEADLINE", now)
        purged = self.let_go(now)
        # Those whose key a live task has count as taken up too.
        assert counts[2] >= len(redriven)
        assert counts[:4] == (len(reclaimed), len(given_up), counts[2], len(purged))

    def let_go(self, now: Window) -> list[UUID]:
        """Forget what retention deletes: successes of a queue when the oldest has waited."""
        retained = {"SUCCEEDED": "keep_succeeded", "DEAD": "keep_dead"}
        over: list[Task] = []
        for task in self.model.tasks.values():
            keep = getattr(self.model.settings(task), retained.get(task.status, ""), None)
            if keep is not None and past(task.ended and task.ended + keep, now):
                over.append(task)
        gathered = {
            task.queue
            for task in over
            if task.status == "SUCCEEDED"
            and past(task.ended and task.ended + DAY + BATCH_WAIT, now)
        }
        # What a bulk redrive that is under way may still send stays.
        open_since = dict(
            self.database.rows(
                "select filter ->> 'queue', max(began_at) from rdq.redrive_run"
                " where settled_at is null and state in ('RUNNING', 'PAUSED', 'HALTED') group by 1"
            )
        )
        purged = [
            task.id
            for task in over
            if (
                task.queue in gathered if task.status == "SUCCEEDED" else not kept(task, open_since)
            )
        ]
        for task_id in purged:
            del self.model.tasks[task_id]
        return purged


def kept(task: Task, open_since: Mapping[str, datetime]) -> bool:
    return bool(
        task.ended and task.queue in open_since and task.ended.low <= open_since[task.queue]
    )


def past(moment: Window | None, now: Window) -> bool:
    return moment is not None and moment.high <= now.low


def arrays(claims: Sequence[Claim]) -> tuple[list[UUID], list[UUID]]:
    return [claim.task_id for claim in claims], [claim.token for claim in claims]
