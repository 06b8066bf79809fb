"""``python -m tools.demo [--keep]``."""

import argparse
import os
import shlex
import sys
import time

from tools import demo
from tools.demo import failures, redrives, screen, signals
from tools.demo.stage import DATABASE, NotAsTold, Stage, private_server, set_up
from tools.postgres import Server, ServerError

LOG_LINES = 20


def main() -> int:
    """Return 0 if all came true, 1 if something did not, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description=demo.__doc__)
    parser.add_argument(
        "--keep", action="store_true", help="leave the server running, however the demo ends"
    )
    keep: bool = parser.parse_args().keep
    _forget_other_servers()
    signals.take_for_ctrl_c()
    try:
        with private_server(keep) as server:
            try:
                _play(server, keep)
            finally:
                if keep:
                    _say_how_to_stop(server)
    except (NotAsTold, ServerError) as error:
        print(f"\nNot as told: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
    return 0


def _play(server: Server, keep: bool) -> None:
    begin = time.monotonic()
    with set_up(server) as stage:
        screen.say("Look around meanwhile, from another terminal:")
        screen.show(
            f"{server.binaries / 'psql'} {shlex.quote(server.dsn(DATABASE))}\n"
            f"postgresql://postgres@127.0.0.1:{server.port}/{DATABASE}"
        )
        end = "stays at the end" if keep else "is removed at the end (it stays with --keep)"
        screen.say(f"The server {end}. What the runners log: {stage.log}")
        try:
            redrives.play(stage, failures.play(stage))
        except Exception:
            _show_log(stage)
            raise
    screen.say(f"All came true as told, in {time.monotonic() - begin:.0f} s.")


def _show_log(stage: Stage) -> None:
    if stage.log.exists():
        lines = stage.log.read_text().splitlines()[-LOG_LINES:]
        print(f"\nThe end of {stage.log}:", *lines, sep="\n", file=sys.stderr)


def _say_how_to_stop(server: Server) -> None:
    arguments = [server.binaries / "pg_ctl", "stop", "--silent", f"--pgdata={server.data}"]
    command = shlex.join(map(str, arguments))
    if os.geteuid() == 0:
        # PostgreSQL's programs refuse root.
        command = f"runuser -u {server.folder.owner()} -- {command}"
    screen.say("The server still runs. To stop and remove it:")
    screen.show(f"{command} && rm -r {server.folder}")


def _forget_other_servers() -> None:
    """Take libpq's variables out of the environment: they are about somebody else's server."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]


if __name__ == "__main__":
    sys.exit(main())
