"""One line a transition, for machines and for people, and nothing in it that may be secret."""

import json
import logging
import re
import sys

from rdq_runner.logs import JsonFormatter, TextFormatter
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
