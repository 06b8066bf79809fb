"""What a runner says: one line an event, of fields that are safe to keep.

Never a payload, headers or an error's message: those may hold secrets. The history has them.

There are two lines for each task, which with a logging call each took more than half of the
runner's time. So the lines of a batch are made and written at once where nobody but us handles
them: that takes an eighth. An application that embeds a runner gets ordinary records.

In a process of its own a runner never waits for whoever reads its log: see `rdq_runner.outputs`. An
application's own handlers of logs are called in the runner's threads, and should not block either.
"""

import json
import logging
import sys
import threading
import time
from collections.abc import Hashable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

from rdq_runner.fields import Fields, members
from rdq_runner.outputs import Output

LOGGER: Final = logging.getLogger("rdq_runner")

LogFormat = Literal["json", "text"]
LogLevel = Literal["info", "warning", "error"]

# For warnings that may come again and again, or about any number of names.
RARELY_SECONDS: Final = 60.0
MOST_WARNINGS: Final = 10


def say(level: int, event: str, **fields: object) -> None:
    """Log an event; fields that are None are left out."""
    say_each(level, event, [fields])


def say_each(level: int, event: str, each: Iterable[Fields]) -> None:
    """Log an event once for each of these fields, as `say` does; they are read only then."""
    if not LOGGER.isEnabledFor(level) or not (lines := list(each)):
        return
    if own := _only_handler(level):
        own.write(level, event, lines)
        return
    for fields in lines:
        extra = {"rdq_fields": {name: value for name, value in fields.items() if value is not None}}
        LOGGER.handle(
            LOGGER.makeRecord(LOGGER.name, level, __file__, 0, event, (), None, "say", extra)
        )


def configure(log_format: LogFormat, log_level: LogLevel) -> None:
    """Send all logs of the process, from a level on, to standard error."""
    handler = Lines(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=log_level.upper(), handlers=[handler])


def flush() -> None:
    """Write what was said, before a process ends without the interpreter's own end."""
    for own in _own_handlers():
        own.flush()


def left_out() -> int:
    """Return how many lines were lost, because nobody read them or the disk was full."""
    return sum(own.output.left_out for own in _own_handlers())


class Rarely:
    """Which warnings to give: each once a minute, and so many different ones in that time.

    Safe for threads; it remembers no more than that.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = 0.0
        self._said: set[Hashable] = set()

    def allows(self, what: Hashable, *, always: bool = False) -> bool:
        """Whether to say it now.

        :param always: it is said in any case, and counts as said.
        """
        now = time.monotonic()
        with self._lock:
            if now >= self._until:
                self._until = now + RARELY_SECONDS
                self._said.clear()
            if not always and (what in self._said or len(self._said) >= MOST_WARNINGS):
                return False
            self._said.add(what)
            return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for machines; a stack is a field of it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = dict(_fields(record))
        if record.exc_info:
            fields["stack"] = self.formatException(record.exc_info)
        event = record.getMessage()
        beginning = self.beginning(record.created, record.levelname, record.name, event)
        return self.line(beginning, fields)

    def beginning(self, created: float, level: str, logger: str, event: str) -> str:
        """Return what all lines of an event have in common."""
        moment = datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds")
        common = {"time": moment, "level": level.lower(), "logger": logger, "event": event}
        return f"{{{members(common)}"

    def line(self, beginning: str, fields: Fields) -> str:
        """Return a line."""
        rest = members(fields)
        return f"{beginning}, {rest}}}" if rest else f"{beginning}}}"


class TextFormatter(logging.Formatter):
    """One line for people, in local time: what happened, then the fields; a stack below it.

    A value that could be misread, or could pretend to be another line, is quoted as in JSON.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        event = record.getMessage()
        beginning = self.beginning(record.created, record.levelname, record.name, event)
        line = self.line(beginning, _fields(record))
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line

    def beginning(self, created: float, level: str, logger: str, event: str) -> str:
        """Return what all lines of an event have in common."""
        moment = datetime.fromtimestamp(created, UTC).astimezone()
        event = _single(event if logger == LOGGER.name else f"{logger}: {event}")
        return f"{moment.strftime('%Y-%m-%d %H:%M:%S.%f')[:-3]} {level:<8} {event:<16}"

    def line(self, beginning: str, fields: Fields) -> str:
        """Return a line."""
        rest = " ".join(
            [f"{name}={_quoted(value)}" for name, value in fields.items() if value is not None]
        )
        return f"{beginning} {rest}".rstrip()


class Lines(logging.Handler):
    """Writes with one of our formatters, to standard error unless it is given another stream."""

    def __init__(self, formatter: JsonFormatter | TextFormatter, stream: Any = None) -> None:
        super().__init__()
        self.output = Output(sys.stderr if stream is None else stream, self._say_left_out)
        self.lines = formatter
        self.setFormatter(formatter)

    def write(self, level: int, event: str, each: Sequence[Fields]) -> None:
        """Write all lines of an event at once."""
        self.output.write(self._text(level, event, each), len(each))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, of whichever logger."""
        try:
            text = self.format(record) + "\n"
        except Exception as error:  # as of a message that does not fit its arguments
            fields = {"of": record.name, "error_type": type(error).__name__}
            text = self._text(logging.ERROR, "a record cannot be formatted", [fields])
        self.output.write(text, 1)

    def flush(self) -> None:
        """Wait a moment for what is not written yet."""
        self.output.flush()

    def _say_left_out(self, count: int) -> str:
        return self._text(logging.WARNING, "log lines were left out", [{"count": count}])

    def _text(self, level: int, event: str, each: Iterable[Fields]) -> str:
        beginning = self.lines.beginning(
            time.time(), logging.getLevelName(level), LOGGER.name, event
        )
        return "".join([self.lines.line(beginning, fields) + "\n" for fields in each])


def _own_handlers() -> list[Lines]:
    return [own for own in logging.getLogger().handlers if isinstance(own, Lines)]


def _only_handler(level: int) -> Lines | None:
    """Return our handler, if records of ours would go there, and nowhere else."""
    match logging.getLogger().handlers:
        case [Lines() as own] if (
            LOGGER.propagate
            and not (LOGGER.handlers or LOGGER.filters or own.filters)
            and own.level <= level
            and own.formatter is own.lines
        ):
            return own
    return None


def _fields(record: logging.LogRecord) -> Fields:
    fields: Fields = getattr(record, "rdq_fields", {})
    return fields


def _quoted(value: object) -> str:
    text = str(value)
    plain = text.isprintable() and text != "" and not set(text) & set(' "=')
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


def _single(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)
