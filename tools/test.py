"""Runs the tests: pgTAP with pg_prove, then pytest, on one server that is found or made for them.

python -m tools.test                                       everything
python -m tools.test pgtap_tests/claim tests/test_x.py     some of it; options go to pytest
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psycopg

from tools.template import clone, drop, ensure_template
from tools.testbed import Testbed, obtain

ROOT = Path(__file__).parents[1]
PGTAP = "pgtap_tests"


def main(arguments: Sequence[str]) -> int:
    """Return 0 if everything that was asked for passed."""
    os.chdir(ROOT)
    pgtap = [argument for argument in arguments if argument.startswith(PGTAP)]
    others = [argument for argument in arguments if argument not in pgtap]
    python = any(argument.startswith("tests") for argument in others)
    with obtain() as testbed:
        print(f"PostgreSQL: {testbed.name}", flush=True)
        ensure_template(testbed.dsn)
        results = {}
        if pgtap or not python:
            results["pg_prove"] = _prove(testbed, pgtap or [PGTAP])
        if python or not pgtap:
            results["pytest"] = _pytest(testbed, others)
    for runner, code in results.items():
        print(f"{runner}: {'passed' if code == 0 else f'failed with exit code {code}'}")
    return int(any(results.values()))


def _prove(testbed: Testbed, arguments: Sequence[str]) -> int:
    """Run the files on one database: each of them rolls back what it does."""
    if not any(Path(PGTAP).rglob("*.sql")):
        return 0
    database = f"rdq_pgtap_{os.getpid()}"
    with psycopg.connect(testbed.dsn, autocommit=True) as server:
        clone(server, database)
        try:
            return testbed.prove(database, arguments)
        finally:
            drop(server, database)


def _pytest(testbed: Testbed, arguments: Sequence[str]) -> int:
    environment = {**os.environ, "RDQ_TEST_DSN": testbed.dsn}
    command = [sys.executable, "-m", "pytest", "-n", "2", *arguments]
    return subprocess.call(command, env=environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
