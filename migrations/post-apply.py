"""Loads the functions of sql/ again after steps were applied, in the order of sql/install.sql."""

import re
from pathlib import Path

from yoyo import step

SQL = Path(__file__).resolve().parent.parent / "sql"


def load_functions(connection):
    """Run the files that install.sql includes, but for the steps: those are in ../migrations."""
    connection.execute("set local check_function_bodies = off")  # they may call each other
    connection.execute("set local standard_conforming_strings = on")  # what they mean depends on it
    install = (SQL / "install.sql").read_text(encoding="utf-8")
    for name in re.findall(r"^\\ir (?!\.\./)(\S+)", install, re.MULTILINE):
        try:
            connection.execute((SQL / name).read_text(encoding="utf-8"))
        except connection.Error as error:
            error.add_note(f"in sql/{name}")
            raise


step(load_functions)
