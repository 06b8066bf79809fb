"""The handlers of the story, in two versions of which the second has the fix."""

import os
from http.client import HTTPConnection
from typing import Any, Final

from rdq_runner import Handlers, Task

v1 = Handlers()
v2 = Handlers()

DECIMALS_1: Final = {"EUR": 2, "USD": 2}
DECIMALS_2: Final = {**DECIMALS_1, "JPY": 0}


@v1.handler("charge")
@v2.handler("charge")
def charge(task: Task) -> None:
    """Call the bank; by the key, the same at each attempt, it knows a repetition."""
    order = task.json()
    bank = HTTPConnection("127.0.0.1", int(os.environ["BANK_PORT"]), timeout=10)
    try:
        bank.request("POST", f"/{order['order']}", task.payload, {"Idempotency-Key": str(task.id)})
        assert bank.getresponse().status == 204
    finally:
        bank.close()


@v1.handler("payout")
def payout_1(task: Task) -> str:
    """Write a line of a file, in the currencies that somebody thought of."""
    return line(task.json(), DECIMALS_1)


@v2.handler("payout")
def payout_2(task: Task) -> str:
    """The same, and in yen."""
    return line(task.json(), DECIMALS_2)


def line(order: dict[str, Any], decimals: dict[str, int]) -> str:
    """Return an amount as the bank's files have it.

    :raises KeyError: nobody thought of its currency.
    """
    return f"{order['order']} {order['amount'] * 10 ** decimals[order['currency']]:.0f}"
