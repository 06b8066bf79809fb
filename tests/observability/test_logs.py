"""One line a transition, for machines and for people, and nothing in it that may be secret."""

import io
import json
import logging
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest

from rdq_runner.fields import Fields
from rdq_runner.logs import JsonFormatter, Lines, TextFormatter, left_out, say_each
from tests.observability.conftest import Watch
from tests.runner.conftest import Queue, Run


def record(event: str, name: str = "rdq_runner", **fields: object) -> logging.LogRecord:
    """Return a record as `say` makes it."""
    made = logging.LogRecord(name, logging.WARNING, __file__, 1, event, None, None)
    made.rdq_fields = fields
    return made


def test_a_transition_is_one_json_line(queue: Queue, watch: Watch) -> None:
    queue.alter(max_attempts=1)
    watched = watch()
    task = queue.submit("fail", **{"class": "AMBIGUOUS"})
    queue.wait_for("DEAD", task)
    watched.process.stop()
    lines = [json.loads(line) for line in watched.process.output.splitlines()]
    begin, end = (line for line in lines if line.get("task") == str(task))
    for line in (begin, end):
        assert (line["queue"], line["handler"], line["attempt"]) == ("q", "fail", 1)
    assert begin["event"] == "attempt begins"
    assert (end["event"], end["outcome"], end["status"]) == ("attempt ended", "FAILED", "DEAD")
    assert (end["error_class"], end["dead_reason"]) == ("AMBIGUOUS", "EXHAUSTED")
    assert end["error_type"] == "rdq_runner.Ambiguous"
    assert "s3cret" not in watched.process.output


def test_a_terminal_gets_lines_that_people_can_read() -> None:
    line = TextFormatter().format(
        record("attempt ended", queue="q", seconds=0.25, outcome="FAILED")
    )
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} WARNING  attempt ended    "
        r"queue=q seconds=0\.25 outcome=FAILED",
        line,
    )


def test_the_runner_can_write_for_a_terminal(queue: Queue, run: Run) -> None:
    runner = run("--log-format", "text")
    task = queue.submit("ok")
    queue.wait_for("SUCCEEDED", task)
    runner.stop()
    [line] = [line for line in runner.output.splitlines() if "attempt ended" in line]
    assert f"INFO     attempt ended    task={task} queue=q handler=ok attempt=1 seconds=" in line


def test_attempts_can_be_left_out(queue: Queue, run: Run) -> None:
    runner = run("--log-level", "warning")
    queue.wait_for("SUCCEEDED", queue.submit("ok"))
    unknown = queue.submit("unknown")
    runner.wait_for("no such handler in this runner")
    queue.wait_for_outcomes("RELEASED", unknown)
    runner.stop()
    assert {line["level"] for line in runner.events} == {"warning"}


def test_no_value_can_pretend_to_be_another_line_or_field() -> None:
    values = ["two words", "a\nb", "\x1b[31mred", "x=1", 'say "hi"', "", "naïve", "\u2028"]
    fields = {f"f{number}": value for number, value in enumerate(values)}
    text = TextFormatter().format(record("event", **fields))
    assert text.isprintable()
    for name, value in fields.items():
        quoted = json.dumps(value, ensure_ascii=not value.isprintable())
        assert f"{name}={value if value == 'naïve' else quoted}" in text
    line = JsonFormatter().format(record("event", **fields))
    assert line.isprintable()
    assert json.loads(line).items() >= fields.items()


def test_other_loggers_are_named_and_stacks_are_kept() -> None:
    try:
        raise ValueError("wrong")
    except ValueError:
        made = record("failed\nbadly", "some.library")
        made.exc_info = sys.exc_info()
    first, second, *_ = TextFormatter().format(made).splitlines()
    assert first.endswith(r'"some.library: failed\nbadly"')
    assert second.startswith("Traceback")
    assert json.loads(JsonFormatter().format(made))["stack"].startswith("Traceback")


FIELDS: list[dict[str, object]] = [
    {"task": UUID(int=7), "queue": "q", "handler": "h", "attempt": 2, "seconds": 0.25},
    {"stale": True, "left_out": None, "at": datetime(2026, 1, 1, tzinfo=UTC), "odd": 'é\n"x"'},
]


class Output(Lines):
    """Our handler, with what it has written."""

    def __init__(self, formatter: JsonFormatter | TextFormatter) -> None:
        self.stream = io.StringIO()
        super().__init__(formatter, self.stream)
        self.batches = 0

    def write(self, level: int, event: str, each: Sequence[Fields]) -> None:
        self.batches += 1
        super().write(level, event, each)

    def say(self, *others: logging.Handler) -> str:
        """Say two things while this handles all logs; return the lines, with no time in them.

        :param others: handlers beside it.
        """
        root = logging.getLogger()
        before, root.handlers = root.handlers, [self, *others]
        try:
            say_each(logging.WARNING, "attempt ended", FIELDS)
        finally:
            root.handlers = before
        self.flush()
        text = self.stream.getvalue()
        self.stream.seek(0)
        self.stream.truncate()
        return re.sub(r"(?m)^(\W*(time\W+)?)[-\d]+.[:.\d]{12}", r"\1", text)


class Kept(logging.Handler):
    """An application's handler."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture(params=[JsonFormatter, TextFormatter])
def output(request: pytest.FixtureRequest) -> Output:
    return Output(request.param())


def test_lines_that_are_written_at_once_are_those_of_single_records(output: Output) -> None:
    at_once, batches = output.say(), output.batches
    one_by_one = output.say(logging.NullHandler())
    assert at_once == one_by_one
    assert at_once.count("\n") == len(FIELDS)
    assert (batches, output.batches) == (1, 1)


def test_handlers_and_filters_of_an_application_get_records(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, logger = Kept(), logging.getLogger("rdq_runner")
    output.say(kept)
    with monkeypatch.context() as patch:
        patch.setattr(logger, "handlers", [kept])
        output.say()
    for filtered in (logger, output):
        with monkeypatch.context() as patch:
            patch.setattr(filtered, "filters", [lambda record: kept.handle(record)])
            output.say()
    assert [record.getMessage() for record in kept.records] == ["attempt ended"] * 8
    assert output.batches == 0


def test_what_is_below_a_level_is_not_written(output: Output) -> None:
    output.setLevel(logging.ERROR)
    assert output.say() == ""


def test_an_output_that_fails_ends_nothing_and_the_lines_are_counted(output: Output) -> None:
    output.stream.close()
    root = logging.getLogger()
    before, root.handlers = root.handlers, [output]
    try:
        say_each(logging.WARNING, "attempt ended", FIELDS)
        output.flush()
        assert left_out() == len(FIELDS)
    finally:
        root.handlers = before
    assert output.batches == 1
