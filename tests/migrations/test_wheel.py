"""The wheel: it carries the schema, and its dependencies are all that it needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rdq_runner import schema
from tests.migrations.ways import dump, with_psql


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_migrates_from_a_fresh_environment(bare: str, tmp_path: Path) -> None:
    def run(*command: str | Path, folder: Path = tmp_path) -> None:
        subprocess.run(command, cwd=folder, env={**os.environ, "RDQ_DSN": bare}, check=True)

    run(
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        tmp_path,
        folder=schema.FOLDER,
    )
    [wheel] = tmp_path.glob("*.whl")
    run(sys.executable, "-m", "venv", "fresh")
    run("fresh/bin/pip", "install", "--quiet", wheel)
    run("fresh/bin/rdq-runner", "migrate")
    installed = dump(bare)
    with_psql(bare)
    assert dump(bare) == installed
