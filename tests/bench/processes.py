"""Processes that a run starts, and ends."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
STOP_SECONDS: Final = 20.0


class WorkerFailed(Exception):
    """A process ended by itself; the message has the end of what it said."""


@contextmanager
def running(
    command: Sequence[str],
    log: Path,
    converses: bool = False,
    may_end: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process from the project's folder, with a file for its output; it ends with the block.

    :param converses: its standard input and output are pipes; only what it complains is logged.
    :param may_end: it has an end of its own.
    :param environment: what it has besides ours.
    :raises WorkerFailed: it had ended before.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE if converses else None,
            stdout=subprocess.PIPE if converses else output,
            stderr=output,
        )
    ended = False
    try:
        try:
            yield process
        finally:
            ended = process.poll() is not None
            _end(process)
            for pipe in filter(None, (process.stdin, process.stdout)):
                pipe.close()
    except Exception as error:
        error.add_note(_tail(log))
        raise
    if ended and not (may_end and process.returncode == 0):
        raise WorkerFailed(f"{command[1:4]} ended with {process.returncode}:\n{_tail(log)}")


@contextmanager
def saying_where(module: str, *arguments: str) -> Iterator[str]:
    """Run a module of the benchmark in a process of its own; give the first line that it prints."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-10:])
