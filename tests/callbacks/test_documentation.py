"""What docs/callbacks.md shows is so."""

import re

from rdq_runner.answers import Exchange
from rdq_runner.posts import trouble
from tests.conftest import Connection
from tests.docs.test_examples import ROOT, statements

PAGE = "docs/callbacks.md"


def test_its_statements_can_be_pasted(db: Connection) -> None:
    db.execute(statements(PAGE))
    rows = db.execute("select queue, handler from rdq.endpoints").fetchall()
    assert rows == [("payments", "charge")]


def test_it_names_every_kind_of_trouble() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    documented = {name.removeprefix("http.") for name in re.findall(r"`(http\.\w+)`", text)}
    source = (ROOT / "rdq_runner/posts.py").read_text(encoding="utf-8")
    source += (ROOT / "rdq_runner/callbacks.py").read_text(encoding="utf-8")
    raised = set(re.findall(r'Trouble\(\s*"(\w+)"', source)) | {"refused", "connect"}
    assert documented == raised


def test_what_nobody_foresaw_before_anything_was_sent_is_transient() -> None:
    assert trouble(RuntimeError("?"), Exchange(), 1).error_class == "TRANSIENT"
    assert trouble(RuntimeError("?"), Exchange(sent=True), 1).error_class == "AMBIGUOUS"
