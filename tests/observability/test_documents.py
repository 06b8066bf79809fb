"""The rules, the dashboard and the page name what a real runner exports, and nothing else."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from tests.observability.conftest import Scrape, Watch
from tests.runner.conftest import Hold, Queue

DOCS = Path(__file__).parents[2] / "docs"

# Prometheus itself gives every sample the labels of its target.
OF_THE_TARGET = {"instance", "job"}


def rules() -> list[dict[str, Any]]:
    """Return the rules."""
    groups = yaml.safe_load((DOCS / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    """Return the dashboard."""
    loaded: dict[str, Any] = json.loads((DOCS / "dashboard.json").read_text())
    return loaded


def expressions() -> Iterator[Any]:
    """Yield an expression of each rule and each panel."""
    for rule in rules():
        yield pytest.param(rule["expr"], id=rule["alert"])
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "5m").replace("$queue", ".*")
            yield pytest.param(expression, id=f"{panel['title']} {target['refId']}")


@pytest.fixture(scope="module")
def exported() -> Scrape:
    """What a runner exports: filled by the first test that has one."""
    return Scrape()


@pytest.fixture
def scrape(exported: Scrape, request: pytest.FixtureRequest) -> Scrape:
    if not exported:
        queue: Queue = request.getfixturevalue("queue")
        watch: Watch = request.getfixturevalue("watch")
        hold: Hold = request.getfixturevalue("hold")
        site = watch("--code-version", "v7", "--concurrency", "1").site
        queue.wait_for("DEAD", queue.submit("fail", **{"class": "PERMANENT"}))
        queue.submit("hold", **hold.payload)
        exported.update(site.wait_for(1, "rdq_in_flight"))
    return exported


@pytest.mark.parametrize("expression", [*expressions()])
def test_an_expression_asks_for_what_is_exported(expression: str, scrape: Scrape) -> None:
    tree = promql_parser.parse(expression)
    labels: set[str] = set()
    grouped: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            assert node.name in scrape.names, node.name
            labels.update(scrape.names[node.name])
            check_matchers(node, scrape)
        elif isinstance(node, promql_parser.AggregateExpr) and node.modifier:
            grouped.update(node.modifier.labels)
        elif (
            isinstance(node, promql_parser.BinaryExpr) and node.modifier and node.modifier.matching
        ):
            grouped.update(node.modifier.matching.labels)

    promql_parser.walk(tree, visit)
    assert grouped <= labels | OF_THE_TARGET


def check_matchers(selector: Any, scrape: Scrape) -> None:
    """Check that a selector finds something."""
    for matcher in selector.matchers.matchers:
        found = {dict(has).get(matcher.name) for name, has in scrape if name == selector.name}
        if matcher.op == promql_parser.MatchOp.Equal:
            assert matcher.value in found
        else:
            assert any(re.fullmatch(matcher.value, value) for value in found if value is not None)


def test_legends_and_texts_use_labels_that_are_left() -> None:
    for rule in rules():
        expression = promql_parser.parse(rule["expr"]).prettify()
        for label in re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())):
            assert re.search(rf"by \([^)]*\b{label}\b", expression), (rule["alert"], label)
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                known = rf"by \([^)]*\b{label}\b|rdq_runner_info"
                assert re.search(known, target["expr"]), (panel["title"], label)


def test_the_page_explains_every_metric_with_its_labels(scrape: Scrape) -> None:
    page = (DOCS / "monitoring.md").read_text()
    documented = dict(re.findall(r"^\| `(rdq_\w+)` \| ([\w, ]*) ?\|", page, re.MULTILINE))
    real: dict[str, set[str]] = {}
    for name, labels in scrape.names.items():
        if name.startswith("rdq_") and not name.endswith("_created"):
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            real.setdefault(family, set()).update(labels - {"le"})
    assert {n: set(re.findall(r"\w+", labels)) for n, labels in documented.items()} == real


def test_panels_do_not_overlap() -> None:
    seen: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & seen, panel["title"]
        assert max(x for x, _ in cells) < 24
        seen |= cells
