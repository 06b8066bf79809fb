"""How far something has come: a bar in a terminal, else a line at each change; on stderr."""

from types import TracebackType
from typing import Self

import click
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from rdq_runner.commands.tables import console
from rdq_runner.visible import visible


class Progress:
    """The progress towards a total; nothing is read as markup."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._said: tuple[int, str] | None = None
        screen = console(err=True)
        self._bar = Bar(
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=screen,
            disable=not screen.is_terminal,
            auto_refresh=False,
        )
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def update(self, done: int, said: str) -> None:
        """Show how much is done."""
        said = visible(said)
        if self._bar.disable:
            if (done, said) != self._said:
                click.echo(f"{done} of {self._total}: {said}", err=True)
        else:
            self._bar.update(self._task, completed=done, description=said, refresh=True)
        self._said = (done, said)
