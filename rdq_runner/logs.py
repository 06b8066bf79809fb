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
    handler.setFormatter(_Formatter(log_format))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class _Formatter(logging.Formatter):
    def __init__(self, log_format: LogFormat) -> None:
        super().__init__()
        self._format = log_format

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, "rdq_fields", {}),
        }
        if record.exc_info:
            event["stack"] = self.formatException(record.exc_info)
        if self._format == "json":
            return json.dumps(event, default=str)
        return " ".join(f"{name}={value}" for name, value in event.items())
