"""Everything by which others watch a runner; none of it can hold up its work."""

import os
import threading
from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from rdq_runner.gauges import QueueGauges, RunnerGauges
from rdq_runner.health import Health, HealthServer
from rdq_runner.leases import Leases
from rdq_runner.metrics import Metrics
from rdq_runner.registry import Entry, Registry
from rdq_runner.sessions import Database, Session

# To leave the registry of runners: a courtesy, which a server that is lost does not get.
LEAVE_SECONDS: Final = 2.0


class Monitor:
    """The metrics, the HTTP server, and the runner's row in ``rdq.runners``.

    :param knows: whether this runner has the handler of a queue.
    :param overdue: how many handlers run on after their timeout.
    :param shown_in: the registry of an application, which serves it itself; None makes one, with
        the memory and CPU of the process.
    :raises ValueError: another runner's metrics are in that registry, or PROMETHEUS_MULTIPROC_DIR
        is no folder in which a file can be made.
    """

    def __init__(
        self,
        database: Database,
        leases: Leases,
        entry: Entry,
        knows: Callable[[str, str], bool],
        overdue: Callable[[], int],
        shown_in: CollectorRegistry | None = None,
    ) -> None:
        if shown_in is None:
            shown_in = CollectorRegistry()
            ProcessCollector(registry=shown_in)
        self._shown_in = shown_in
        try:
            self.metrics = Metrics(shown_in, knows)
        except OSError as error:
            # The client library's, which keeps every value in a file there.
            raise ValueError(
                f"PROMETHEUS_MULTIPROC_DIR is {os.environ.get('PROMETHEUS_MULTIPROC_DIR')!r}, where"
                f" no file can be made ({error.strerror}): make the folder, or unset the variable,"
                " which a runner does not need"
            ) from error
        self._queues = QueueGauges(database)
        self.metrics.show(
            RunnerGauges(
                entry=entry,
                leases=leases,
                database=database,
                label=self.metrics.label,
                overdue=overdue,
            )
        )
        self.metrics.show(self._queues)
        self._registry = Registry(Session(database, "registry", quiet=True), entry, leases)
        # Not one of the runner's threads: a runner whose registry failed is not lame.
        self._thread = threading.Thread(target=self._registry.run, name="rdq-registry", daemon=True)
        self._server: HealthServer | None = None

    def start(self, health: Health, address: str, port: int | None) -> None:
        """Begin; without a port nothing is served.

        :raises OSError: the address is not this machine's, or is in use.
        """
        if port is not None:
            self._server = HealthServer(address, port, self._shown_in, health)
            self._server.start()
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._registry.stop()
        if self._thread.is_alive():
            self._thread.join(LEAVE_SECONDS)
        if self._server:
            self._server.stop()
        self._queues.close()
        self.metrics.close()
