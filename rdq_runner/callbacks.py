"""Handlers that are HTTP callbacks: each attempt is a POST, its answer is the outcome.

They run at once, as coroutines of one event loop in a thread of its own, so that no handler's code
can hold them up.
"""

import asyncio
import logging
import os
import random
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final

from rdq_runner import answers, posts, signatures
from rdq_runner.answers import Exchange, Rule, Trouble
from rdq_runner.destinations import Destinations
from rdq_runner.executor import Executor, Finish
from rdq_runner.leases import Lease
from rdq_runner.logs import Rarely, say
from rdq_runner.outcomes import Outcome, Release, describe
from rdq_runner.rows import Claim, Endpoint

HANDED_BACK_SECONDS: Final = 60.0
# An attempt that is cut off has only to say so.
STOP_SECONDS: Final = 5.0

_AGENT: Final = f"rdq-runner/{version('rdq-runner')}"

# W3C Trace Context, sections 3.2 and 3.3. What is not of this form could hold anything.
_TRACEPARENT: Final = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?")
_TRACESTATE: Final = re.compile("[ -~\t]{1,512}")


@dataclass(frozen=True)
class _Work:
    lease: Lease
    endpoint: Endpoint


class Callbacks:
    """The executor of all endpoints.

    :param destinations: where to connect to is allowed.
    :param environment: where references to secrets lead.
    """

    def __init__(
        self,
        finish: Finish,
        destinations: Destinations,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._finish = finish
        self._environment = environment
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self._rarely = Rarely()
        self._destinations = destinations
        self._client = posts.Client(destinations, posts.tls_context())
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rdq-callbacks", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._serving: asyncio.Task[None]
        self._group: asyncio.TaskGroup

    def register(self, endpoints: Iterable[Endpoint]) -> Mapping[tuple[str, str], Executor]:
        """Take these endpoints instead of those before; return the routes to them.

        The log names those that this runner may not reach, as far as their URLs tell.
        """
        before = self._endpoints
        self._endpoints = {(endpoint.queue, endpoint.handler): endpoint for endpoint in endpoints}
        for key, endpoint in self._endpoints.items():
            refused = self._destinations.refusal_of_url(endpoint.url)
            if refused and endpoint != before.get(key):
                labels = {"queue": endpoint.queue, "handler": endpoint.handler}
                say(logging.WARNING, "endpoint is out of reach", **labels, reason=refused)
        return dict.fromkeys(self._endpoints, self)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()
        self._ready.wait()

    def run(self, leases: Sequence[Lease]) -> None:
        """Begin attempts."""
        work = [
            _Work(lease, self._endpoints[lease.claim.queue, lease.claim.handler])
            for lease in leases
        ]
        self._loop.call_soon_threadsafe(self._begin, work)

    def stop(self) -> None:
        """Cut off what still runs: AMBIGUOUS if its request was sent, else released."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._serving.cancel)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        serving = asyncio.current_task()
        assert serving, "a coroutine runs in a task"
        self._serving = serving
        self._loop = asyncio.get_running_loop()
        # Whoever stops this cancels the attempts first, and then closes the connections.
        async with self._client, asyncio.TaskGroup() as self._group:
            self._ready.set()
            await asyncio.Event().wait()

    def _begin(self, work: Iterable[_Work]) -> None:
        for one in work:
            self._group.create_task(self._attempt(one))

    async def _attempt(self, work: _Work) -> None:
        exchange = Exchange()
        try:
            outcome = await self._exchange(work, exchange)
        except asyncio.CancelledError:
            self._finish(work.lease, _cut_off(work.endpoint, exchange))
            raise
        except Exception as error:
            outcome = describe(error)
        self._finish(work.lease, outcome)

    async def _exchange(self, work: _Work, exchange: Exchange) -> Outcome:
        endpoint = work.endpoint
        now = datetime.now(UTC)
        try:
            fields = request_fields(work.lease.claim, endpoint, self._environment, now)
        except signatures.SecretError as error:
            return self._handed_back("cannot sign", work.lease, str(error))
        timeout = endpoint.timeout.total_seconds()
        began = time.monotonic()
        trouble: Trouble | None = None
        try:
            async with asyncio.timeout(timeout):
                await self._client.post(exchange, endpoint.url, fields, work.lease.claim.payload)
        except Exception as error:
            if reason := posts.own_trouble(error, exchange):
                return self._handed_back("cannot send", work.lease, reason)
            trouble = posts.trouble(error, exchange, timeout)
        finally:
            exchange.seconds = time.monotonic() - began
        return answers.outcome(exchange, trouble, _rules(endpoint), datetime.now(UTC))

    def _handed_back(self, event: str, lease: Lease, reason: str) -> Release:
        """Hand a task back: it is this runner that cannot do it, and another one may."""
        if self._rarely.allows((event, lease.claim.queue, lease.claim.handler)):
            say(logging.WARNING, event, **lease.labels, reason=reason)
        return Release(reason, HANDED_BACK_SECONDS * random.uniform(0.8, 1.2))


def request_fields(
    claim: Claim, endpoint: Endpoint, environment: Mapping[str, str], now: datetime
) -> dict[str, str]:
    """Return the header fields of a request that is sent now; names are in lower case.

    The endpoint's own replace the defaults, and are replaced by what the contract says.

    :raises SecretError: the request cannot be signed.
    """
    task_id = str(claim.task_id)
    keys = signatures.keys(endpoint.secret, environment) if endpoint.secret else []
    return {
        "accept": "*/*",
        "accept-encoding": "identity",
        "user-agent": _AGENT,
        **{name.lower(): value for name, value in endpoint.headers.items()},
        **_trace(claim.headers or {}),
        "content-type": claim.content_type,
        "idempotency-key": task_id,
        "rdq-task-id": task_id,
        "rdq-queue": claim.queue,
        "rdq-handler": claim.handler,
        "rdq-attempt": str(claim.attempt_no),
        **signatures.sign(keys, task_id, now, claim.payload),
    }


def _trace(headers: Mapping[str, str]) -> dict[str, str]:
    fields = {name.lower(): value for name, value in headers.items()}
    parent, state = fields.get("traceparent", ""), fields.get("tracestate", "")
    if not _TRACEPARENT.fullmatch(parent):
        return {}
    trace = {"traceparent": parent}
    return {**trace, "tracestate": state} if _TRACESTATE.fullmatch(state) else trace


def _rules(endpoint: Endpoint) -> tuple[Rule, ...]:
    return answers.rules(endpoint.response_rules)


def _cut_off(endpoint: Endpoint, exchange: Exchange) -> Outcome:
    if not exchange.sent:
        return Release("shutdown")
    trouble = Trouble("shutdown", "the runner stopped before the answer came", "AMBIGUOUS")
    return answers.outcome(exchange, trouble, _rules(endpoint), datetime.now(UTC))
