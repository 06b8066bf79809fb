"""Acts 1 to 4: work fails in four ways. What an act tells, it also checks."""

import json
import shlex
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.sql import Literal

from tools.demo.handlers import RATES_1, total
from tools.demo.screen import heading, say, show
from tools.demo.stage import Process, Stage, check

FOREIGN_ORDERS: tuple[dict[str, Any], ...] = (
    {"order": 3001, "amount": 20, "currency": "EUR"},
    {"order": 3002, "amount": 35, "currency": "CHF"},
    {"order": 3003, "amount": 90, "currency": "SEK"},
)


@dataclass(frozen=True)
class Cast:
    """Who is on the stage when everything has failed: a runner, and the tasks."""

    runner: Process
    receipts: list[UUID]
    shipment: UUID
    picture: UUID
    prices: list[UUID]


def play(stage: Stage) -> Cast:
    """Let work fail.

    :raises NotAsTold: something happened otherwise.
    """
    return Cast(
        runner=_open_the_shop(stage),
        receipts=_call_a_service_that_is_down(stage),
        shipment=_ship_with_a_payload_that_is_cut_off(stage),
        picture=_resize_until_the_process_is_killed(stage),
        prices=_hand_over_what_a_consumer_could_not_do(stage),
    )


def _open_the_shop(stage: Stage) -> Process:
    heading("A shop with two queues")
    say(
        "A queue is a unit of policy. These begin their backoff with less than a second, where the"
        " default is a minute, and a crash in images shows after a second."
    )
    stage.run(
        """\
select rdq.create_queue('orders',
  '{"backoff_base": "0.5 seconds", "backoff_cap": "2 seconds", "ambiguous_attempts": 2}')"""
    )
    stage.run(
        """\
select rdq.create_queue('images',
  '{"backoff_base": "0.2 seconds", "lease": "1 second", "vanish_limit": 3}')"""
    )
    say("A runner works on orders, with the handlers of release 1 (tools/demo/handlers.py).")
    variables = (f"{name}={shlex.quote(value)}" for name, value in stage.variables.items())
    show("\n".join(f"export {variable}" for variable in variables))
    return stage.start_runner("orders-1", "orders", release=1)


def _call_a_service_that_is_down(stage: Stage) -> list[UUID]:
    heading("1. A service is down: its calls are retried until it is back")
    say(
        f"Three receipts are to be sent to {stage.service.url}, where nobody listens. A refused"
        " connection is TRANSIENT: another attempt has a really different chance."
    )
    receipts = stage.submit(
        """\
select rdq.submit('orders', 'send_receipt', jsonb_build_object('order', number)) as task_id
from generate_series(1001, 1003) as number"""
    )
    failed_twice = (
        "select bool_and(status = 'PENDING' and attempt_count >= 2)"
        " from rdq.tasks where handler = 'send_receipt'"
    )
    stage.wait_until("each has failed twice", lambda: bool(stage.ask(failed_twice)))
    stage.run(
        """\
select task_id, status, attempt_count, last_error_class,
  round(extract(epoch from next_attempt_at - clock_timestamp()), 2) as next_in_seconds
from rdq.tasks
where handler = 'send_receipt'"""
    )
    say("Now the service is started. Nobody has to do anything else.")
    stage.service.start()
    stage.wait_for("SUCCEEDED", "all receipts are sent", handler="send_receipt")
    say("Each attempt is one row, for ever. Between them lie the rungs of the ladder, jittered:")
    stage.run(
        f"""\
select attempt_no, outcome, error_class, message,
  round(extract(epoch from started_at - lag(finished_at) over (order by attempt_no)), 2)
    as after_seconds
from rdq.history('{receipts[0]}')"""
    )
    for receipt in receipts:
        *failures, last = stage.outcomes(receipt)
        check("the first attempts at a receipt", {*failures}, {"FAILED"})
        check("the last attempt at a receipt", last, "SUCCEEDED")
    check("the receipts that the service has", {*stage.service.receipts}, {*map(str, receipts)})
    return receipts


def _ship_with_a_payload_that_is_cut_off(stage: Stage) -> UUID:
    heading("2. A payload does not parse: dead at once")
    say(
        "This payload was cut off somewhere. Trying again cannot help, so the error is PERMANENT,"
        " and no time is lost with retries."
    )
    [shipment] = stage.submit(
        """\
select rdq.submit('orders', 'ship', '{"order": 2001, "address": "12 Main Str') as task_id"""
    )
    stage.wait_for("DEAD", "it is dead", handler="ship")
    stage.run(
        f"""\
select status, dead_reason, attempt_count, last_error_type, last_message
from rdq.tasks
where task_id = '{shipment}'"""
    )
    check("the attempts at the shipment", stage.outcomes(shipment), ["FAILED"])
    return shipment


def _resize_until_the_process_is_killed(stage: Stage) -> UUID:
    heading("3. A handler takes its process along: reclaimed, and dead in the end")
    say(
        "This picture is too large: the runner's process is killed (SIGKILL, as by a kernel that is"
        " out of memory) and reports nothing. A supervisor starts it again; when the lease has"
        " ended, the task is taken back and tried again. Three times in a row are enough."
    )
    [picture] = stage.submit(
        """select rdq.submit('images', 'resize', '{"megapixels": 900}') as task_id"""
    )
    for number in (1, 2, 3):
        name = f"images-{number}"
        runner = stage.start_runner(name, "images", release=1, seen=number == 1)
        code = stage.wait_for_exit(runner, f"{name} is killed")
        check("the signal that killed it", -code, signal.SIGKILL.value)
    runner = stage.start_runner("images-4", "images", release=1, seen=False)
    stage.wait_for("DEAD", "images-4 has found that it is enough", handler="resize")
    stage.stop_runner(runner)
    stage.run(
        f"""\
select attempt_no, outcome, runner, message,
  round(extract(epoch from finished_at - started_at), 2) as seconds
from rdq.history('{picture}')"""
    )
    check("the attempts at the picture", stage.outcomes(picture), ["LEASE_EXPIRED"] * 3)
    return picture


def _hand_over_what_a_consumer_could_not_do(stage: Stage) -> list[UUID]:
    heading("4. A consumer hands over what it could not do, with the error")
    say(
        "A message broker's consumer fails at three orders. It hands each over with its error,"
        " which becomes attempt 1 and spends nothing. Nobody has said what a KeyError means, so it"
        " is AMBIGUOUS: the effect may have happened. Two more attempts may end like that."
    )
    prices = list(_consume(stage))
    stage.wait_for("DEAD", "all are dead", handler="price")
    for price in prices:
        check("the attempts at a price", stage.outcomes(price), ["FAILED"] * 3)
    return prices


def _consume(stage: Stage) -> Iterator[UUID]:
    for order in FOREIGN_ORDERS:
        try:
            total(order, RATES_1)
        except KeyError as error:
            failure = {"type": type(error).__name__, "message": str(error)}
            yield from stage.submit(
                f"select rdq.submit('orders', 'price', {_literal(order)},\n"
                f"  error => {_literal(failure)}) as task_id"
            )


def _literal(document: dict[str, Any]) -> str:
    return Literal(json.dumps(document)).as_string()
