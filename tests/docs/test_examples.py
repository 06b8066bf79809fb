"""What the documentation shows can be pasted."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Connection
from tools.postgres import embedded_binaries

ROOT = Path(__file__).parents[2]


def statements(page: str) -> str:
    """Return the SQL of a page, in its order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```sql\n(.*?)```", text, re.DOTALL))


def paste(dsn: str, script: str) -> str:
    """Feed psql a script that must not fail, and return what it printed."""
    binaries = embedded_binaries()
    assert binaries is not None
    result = subprocess.run(
        [binaries / "psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", dsn],
        input=script,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_session_of_the_readme_ends_with_a_success_after_a_redrive(database: str) -> None:
    assert re.search(r"SUCCEEDED +\| +1 \| +1\b", paste(database, statements("README.md")))


@pytest.mark.parametrize("ending", ["rdq.complete", "rdq.fail", "rdq.release"])
def test_the_worker_in_psql_claims_and_reports(database: str, db: Connection, ending: str) -> None:
    db.execute("select rdq.create_queue('payments')")
    db.execute("select rdq.submit('payments', 'charge', 'one')")
    page = statements("docs/worker-in-psql.md")
    *preparation, _ = re.split(r"(?=select (?:\* from )?rdq\.complete)", page)
    endings = re.findall(r"select (?:\* from )?(rdq\.\w+)\(.*?;", page, re.DOTALL)
    assert ending in endings
    (report,) = re.findall(rf"select (?:\* from )?{re.escape(ending)}\(.*?;", page, re.DOTALL)
    paste(database, "".join(preparation) + report)
    row = db.execute("select outcome from rdq.attempt").fetchone()
    assert row == ({"rdq.complete": "SUCCEEDED", "rdq.fail": "FAILED"}.get(ending, "RELEASED"),)


def test_every_page_that_a_page_links_to_is_there() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
