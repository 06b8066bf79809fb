"""What tasks carry."""

from collections.abc import Iterable, Sequence
from typing import Final

PAYLOAD_BYTES: Final = 200


def payloads(count: int, size: int = PAYLOAD_BYTES) -> list[str]:
    """Return texts of this many bytes, each beginning with its number in twelve digits."""
    return [f"{number:012} ".ljust(size, "x") for number in range(count)]


def batches(texts: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    """Cut into batches."""
    return (texts[begin : begin + size] for begin in range(0, len(texts), size))


def sizes(count: int, size: int) -> Iterable[int]:
    """Cut a number into sizes of batches."""
    return (min(size, count - begin) for begin in range(0, count, size))
