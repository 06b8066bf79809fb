"""The same behaviours for each way to run a handler. Their payload is a JSON object."""

import asyncio
import contextvars
import ctypes
import decimal
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psycopg

from rdq_runner import Ambiguous, Cancelled, Handlers, Permanent, Task, Transient

KINDS: Final = ["thread", "process", "async", "transactional", "async-transactional"]

handlers = Handlers()


def registered(function: Callable[..., object], **options: Any) -> Handlers:
    """Return a handler ``act`` with options."""
    result = Handlers()
    result.handler("act", **options)(function)
    return result


ERRORS: Final[dict[str, BaseException]] = {
    "transient": Transient("busy"),
    "permanent": Permanent("refused", detail={"code": 51}),
    "ambiguous": Ambiguous("no answer"),
    "value": ValueError("a\0b"),
    "timeout": TimeoutError("timed out"),
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "generator": GeneratorExit(),
    "cancelled error": asyncio.CancelledError(),
    "handed back": Cancelled("not cancelled at all"),
    "memory": MemoryError(),
}


def spin(task: Task) -> None:
    """Keep the interpreter busy, longer than the timeout."""
    end = time.monotonic() + 2
    while time.monotonic() < end:
        pass


def fork_and_exit(task: Task) -> None:
    """End, and leave a process behind that holds all that was open."""
    if os.fork() == 0:
        time.sleep(45)
    os._exit(3)


def write_pid(task: Task) -> None:
    """Tell in which process it runs."""
    with Path(task.json()["file"]).open("a") as file:
        file.write(f"{os.getpid()}\n")


def write_pid_and_hang(task: Task) -> None:
    """Tell in which process it runs, and go on for ever."""
    write_pid(task)
    time.sleep(600)


def terminate_a_fork(task: Task) -> None:
    """Fork as `multiprocessing` does, and end that process as it does."""
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=[600])
    process.start()
    process.terminate()
    process.join(5)
    if process.exitcode != -signal.SIGTERM:
        process.kill()
        raise Permanent(f"the process that was forked ended with {process.exitcode}")


def leave_a_process(task: Task) -> None:
    """Start a program that goes on for ever, and tell which one."""
    program = subprocess.Popen(["sleep", "600"])
    with Path(task.json()["file"]).open("a") as file:
        file.write(f"{program.pid}\n")


def leave_a_process_and_hang(task: Task) -> None:
    leave_a_process(task)
    time.sleep(600)


def leave_a_process_and_exit(task: Task) -> None:
    leave_a_process(task)
    os._exit(3)


def backtrack(task: Task) -> None:
    """Hold the interpreter's lock for ages: a regular expression that backtracks."""
    write_pid(task)
    re.match(r"(a+)+$", "a" * 60 + "b")


_setting = contextvars.ContextVar("_setting", default="nothing")


def tell_the_context(task: Task) -> None:
    """Say what is set, and set it."""
    found = (_setting.get(), decimal.getcontext().prec)
    _setting.set("something")
    decimal.getcontext().prec = 3
    if found != ("nothing", 28):
        raise Permanent(f"found {found}")


def heed(task: Task) -> None:
    """Stop when told to."""
    task.cancellation.wait(60)
    task.heartbeat()


def overflow(task: Task) -> None:
    """Blow the stack, past all that Python watches over."""
    sys.setrecursionlimit(10**9)
    calls: list[Any] = []
    calls.append(ctypes.CFUNCTYPE(None)(lambda: calls[0]()))
    calls[0]()


ORDEALS: Final[dict[str, Callable[[Task], object]]] = {
    "return": lambda task: "done",
    "spin": spin,
    "sleep": lambda task: time.sleep(2.5),
    "exit at once": lambda task: os._exit(7),
    "exit well": lambda task: os._exit(0),
    "kill": lambda task: os.kill(os.getpid(), signal.SIGKILL),
    "crash": lambda task: ctypes.string_at(0),
    "overflow": overflow,
    "heed": heed,
    "hang": lambda task: time.sleep(600),
    "terminate": lambda task: os.kill(os.getpid(), signal.SIGTERM),
    "fork and exit": fork_and_exit,
    "close": lambda task: os.closerange(3, 1000),
    "huge": lambda task: len(bytearray(4 << 30)),
    "pid": write_pid,
    "pid and hang": write_pid_and_hang,
    "terminate a fork": terminate_a_fork,
    "leave a process": leave_a_process,
    "leave a process and hang": leave_a_process_and_hang,
    "leave a process and exit": leave_a_process_and_exit,
    "backtrack": backtrack,
    "tell the context": tell_the_context,
}


def run(task: Task) -> None:
    """Do what the payload says."""
    order = task.json()["do"]
    if error := ERRORS.get(order):
        raise error
    ORDEALS[order](task)


async def run_async(task: Task) -> None:
    """Do what the payload says, and what only a coroutine can."""
    match task.json()["do"]:
        case "heed":
            await task.until_cancelled()
            task.heartbeat()
        case "cancel itself":
            current = asyncio.current_task()
            assert current
            current.cancel()
            await asyncio.sleep(60)
        case "wait":
            await asyncio.sleep(60)
        case "sleep in a thread":
            await asyncio.to_thread(time.sleep, 60)
        case "stray exit":
            asyncio.get_running_loop().call_soon(lambda: exec("raise SystemExit(4)"))
            await asyncio.sleep(0.1)
        case _:
            run(task)


def note(task: Task, connection: psycopg.Connection[Any]) -> None:
    """Leave a trace, and then do what the payload says."""
    connection.execute("insert into public.trace values (%s, %s)", [task.id, task.attempt_no])
    run(task)


async def note_async(task: Task, connection: psycopg.AsyncConnection[Any]) -> None:
    """Leave a trace, and then do what the payload says."""
    await connection.execute("insert into public.trace values (%s, %s)", [task.id, task.attempt_no])
    await run_async(task)


handlers.handler("small", isolation="process", memory_limit=1 << 30)(run)
handlers.handler("new", isolation="process", version="2", errors={ValueError: "PERMANENT"})(run)

for _suffix, _timeout in (("", None), ("-timed", 0.5)):
    handlers.handler(f"thread{_suffix}", timeout=_timeout)(run)
    handlers.handler(f"process{_suffix}", timeout=_timeout, isolation="process")(run)
    handlers.handler(f"async{_suffix}", timeout=_timeout)(run_async)
    handlers.handler(f"transactional{_suffix}", timeout=_timeout, transactional=True)(note)
    handlers.handler(f"async-transactional{_suffix}", timeout=_timeout, transactional=True)(
        note_async
    )
