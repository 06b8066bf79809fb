"""The command line, run to its end."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rdq_runner(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command with some variables of the environment, and none of the tests' own."""
    inherited = {name: v for name, v in os.environ.items() if not name.startswith(("RDQ_", "PG"))}
    return subprocess.run(
        [sys.executable, "-m", "rdq_runner", *arguments],
        cwd=ROOT,
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
