"""The SQL reference says what the catalogue says."""

from tests.conftest import Connection
from tools.reference import PATH, reference


def test_the_sql_reference_is_what_the_catalogue_says(db: Connection) -> None:
    assert PATH.read_text(encoding="utf-8") == reference(db), "stale: run make reference"
