"""Whoever reads the help or the page can go by it."""

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rdq_runner.cli import main
from rdq_runner.commands.exits import MEANINGS, Exit
from tests.commands.tree import ASKING, EVERYTHING, OURS, examples, parse

PAGE = (Path(__file__).parents[2] / "docs/command-line.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", OURS, ids=" ".join)
def test_every_command_says_what_it_does_with_an_example_that_is_right(
    path: tuple[str, ...],
) -> None:
    result = CliRunner().invoke(main, [*path, "--help"])
    assert result.exit_code == 0
    described = OURS[path].help or ""
    assert re.match(r"[A-Z].*\.", described)
    _, _, shown = described.partition("Example:\n")
    found = examples(shown)
    assert found
    for words in found:
        assert tuple(words[: len(path)]) == path
        parse(words)


@pytest.mark.parametrize("path", ASKING, ids=" ".join)
def test_every_command_has_the_forms_for_machines_and_shows_its_sql(path: tuple[str, ...]) -> None:
    flags = {flag for option in ASKING[path].params for flag in option.opts}
    assert flags >= {"--json", "--jsonl", "--wide", "--show-sql", "--dsn", "--config"}


def test_no_command_takes_an_option_of_the_runner_from_the_file() -> None:
    runner = {option.name for option in EVERYTHING["run",].params} - {"dsn", "config", "help"}
    for path, command in OURS.items():
        assert runner.isdisjoint(option.name for option in command.params), path


def test_every_option_says_what_it_is() -> None:
    for path, command in OURS.items():
        for option in command.params:
            assert not isinstance(option, click.Option) or option.help or option.show_default, path


def test_the_page_shows_every_command_and_each_line_is_right() -> None:
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    lines = examples(blocks)
    for words in lines:
        parse(words)
    shown = {tuple(words[: len(path)]) for words in lines for path in OURS}
    left_out = {path for path in OURS if path not in shown}
    assert left_out <= {("task", "show"), ("queue", "drop"), ("redrive", "show")}


def test_the_table_of_exit_statuses_is_the_one_of_the_code() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert {Exit(int(status)): said for status, said in rows} == MEANINGS
    assert set(MEANINGS) == set(Exit)
