"""Flat objects as JSON, in half the time that `json.dumps` takes: there are some for each task."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from json.encoder import encode_basestring_ascii
from operator import attrgetter
from typing import Any, Final

Fields = Mapping[str, object]
"""By name, which is plain ASCII."""


class Written(str):
    """Text with its form in JSON, of what is written again and again."""

    __slots__ = ("json",)
    json: str

    def __new__(cls, text: str, json: str | None = None) -> "Written":
        self = super().__new__(cls, text)
        self.json = json or encode_basestring_ascii(text)
        return self

    @classmethod
    def joined(cls, texts: Sequence["Written"]) -> "Written":
        """Join texts."""
        return cls("".join(texts), f'"{"".join([text.json[1:-1] for text in texts])}"')

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Go to other processes as text."""
        return str, (str(self),)


def members(fields: Fields) -> str:
    """Return what is between the braces; fields that are None are left out."""
    return ", ".join(
        [
            f'"{name}": {_WRITERS.get(type(value), _json)(value)}'
            for name, value in fields.items()
            if value is not None
        ]
    )


def _json(value: object) -> str:
    return json.dumps(value, default=str)


_WRITERS: Final[Mapping[type, Callable[[Any], str]]] = {
    str: encode_basestring_ascii,
    Written: attrgetter("json"),
    int: repr,
    float: repr,
    datetime: lambda moment: f'"{moment}"',
}
