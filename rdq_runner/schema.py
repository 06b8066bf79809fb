"""Where the files of the schema are: in the wheel, or in the repository of an editable install."""

from pathlib import Path

_PACKAGED = Path(__file__).with_name("_schema")

FOLDER = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[1]
SQL = FOLDER / "sql"
MIGRATIONS = FOLDER / "migrations"
