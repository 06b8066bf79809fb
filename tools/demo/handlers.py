"""The handlers of the demo's shop, in two releases of which the second has the fixes.

The failures are real: a port on which nobody listens, a payload that does not parse, a process that
is killed, a mistake in the code.
"""

import os
import signal
from collections.abc import Mapping
from typing import Any, Final
from urllib.request import ProxyHandler, Request, build_opener

from rdq_runner import Handlers, Task

release_1 = Handlers()
release_2 = Handlers()

RATES_1: Final = {"USD": 1.0}
RATES_2: Final = {**RATES_1, "EUR": 1.08, "CHF": 1.12, "SEK": 0.09}

MEMORY_MEGAPIXELS: Final = 100
TILE_MEGAPIXELS: Final = 10

# A proxy that the machine may be set up for knows nothing of our loopback.
_direct = build_opener(ProxyHandler({}))


@release_1.handler("send_receipt")
@release_2.handler("send_receipt")
def send_receipt(task: Task) -> None:
    """Call the receipt service; by the key, the same at each attempt, it knows a repetition."""
    headers = {"Content-Type": task.content_type, "Idempotency-Key": str(task.id)}
    request = Request(os.environ["RECEIPTS_URL"], task.payload, headers)
    with _direct.open(request, timeout=5) as answer:
        answer.read()


@release_1.handler("ship")
@release_2.handler("ship")
def ship(task: Task) -> str:
    """Write a label."""
    order = task.json()
    return f"order {order['order']}: {order['address']}"


@release_1.handler("resize")
def resize_whole(task: Task) -> None:
    """Load all of a picture into memory."""
    if task.json()["megapixels"] > MEMORY_MEGAPIXELS:
        # As the kernel does to a process that takes too much memory: no exception, no goodbye.
        os.kill(os.getpid(), signal.SIGKILL)


@release_2.handler("resize")
def resize_in_tiles(task: Task) -> int:
    """Load a tile at a time; return how many there are."""
    return len(range(0, task.json()["megapixels"], TILE_MEGAPIXELS))


@release_1.handler("price")
def price_1(task: Task) -> float:
    """Know one currency."""
    return total(task.json(), RATES_1)


@release_2.handler("price")
def price_2(task: Task) -> float:
    """Know the others too."""
    return total(task.json(), RATES_2)


def total(order: Mapping[str, Any], rates: Mapping[str, float]) -> float:
    """Return what an order costs in US dollars.

    :raises KeyError: its currency has no rate.
    """
    return float(order["amount"]) * rates[order["currency"]]
