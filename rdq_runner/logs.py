"""What a runner says: one line an event, of fields that are safe to keep.

Never a payload, headers or an error's message: those may hold secrets. The history has them.
"""

import json
import logging
from datetime import UTC, datetime
from typing import Final, Literal

LOGGER: Final = logging.getLogger("rdq_runner")

LogFormat = Literal["json", "text"]


def say(level: int, event: str, **fields: object) -> None:
    """Log an event; fields that are None are left out."""
    known = {name: value for name, value in fields.items() if value is not None}
    LOGGER.log(level, event, extra={"rdq_fields": known})


def configure(log_format: LogFormat) -> None:
    """Send all logs of the process, from INFO on, to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for machines; a stack is a field of it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        event = {
            "time": _moment(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            event["stack"] = self.formatException(record.exc_info)
        return json.dumps(event, default=str)


class TextFormatter(logging.Formatter):
    """One line for people, in local time: what happened, then the fields; a stack below it.

    A value that could be misread, or could pretend to be another line, is quoted as in JSON.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = _moment(record).astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        event = record.getMessage()
        if record.name != LOGGER.name:
            event = f"{record.name}: {event}"
        fields = " ".join(f"{name}={_quoted(value)}" for name, value in _fields(record).items())
        line = f"{moment} {record.levelname:<8} {_single(event):<16} {fields}".rstrip()
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields: dict[str, object] = getattr(record, "rdq_fields", {})
    return fields


def _quoted(value: object) -> str:
    text = str(value)
    plain = text.isprintable() and text != "" and not set(text) & set(' "=')
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


def _single(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)
