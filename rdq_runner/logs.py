"""What a runner says: one line an event, of fields that are safe to keep.

Never a payload, headers or an error's message: those may hold secrets. The history has them.

There are two lines for each task, which with a logging call each took more than half of the
runner's time. So the lines of a batch are made and written at once where nobody but us handles
them: that takes an eighth. An application that embeds a runner gets ordinary records.
"""

import json
import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, Final, Literal

from rdq_runner.fields import Fields, members

LOGGER: Final = logging.getLogger("rdq_runner")

LogFormat = Literal["json", "text"]
LogLevel = Literal["info", "warning", "error"]


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


class Lines(logging.StreamHandler[Any]):
    """Writes to standard error, with one of our formatters."""

    def __init__(self, formatter: JsonFormatter | TextFormatter) -> None:
        super().__init__()
        self.lines = formatter
        self.setFormatter(formatter)

    def write(self, level: int, event: str, each: Sequence[Fields]) -> None:
        """Write all lines of an event at once."""
        beginning = self.lines.beginning(
            time.time(), logging.getLevelName(level), LOGGER.name, event
        )
        lines = "".join([self.lines.line(beginning, fields) + "\n" for fields in each])
        with self.lock or nullcontext():
            try:
                self.stream.write(lines)
                self.flush()
            except Exception:  # as of a full disk: what is not logged must not end a runner
                self.handleError(logging.makeLogRecord({"msg": event}))


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
