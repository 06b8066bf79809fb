"""A payload in an editor: in a file that nobody else can read, and that outlives a refusal."""

import os
import shlex
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID

import click

from rdq_runner.commands.exits import Failure
from rdq_runner.visible import visible


class Draft:
    """A payload that is being edited.

    What was edited and not used stays in its file, whatever goes wrong. The folder is private, too,
    since editors write copies beside the file, or another one in its place.

    :param name: of the file, by which an editor knows what it is.
    """

    def __init__(self, task_id: UUID, payload: bytes, name: str) -> None:
        self._task_id = task_id
        self._payload = payload
        self._used = False
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="rdq-"))
            self._file = self._folder / name
            self._file.touch(mode=0o600)
            self._file.write_bytes(payload)
        except OSError as error:
            raise Failure(
                f"the file for the editor cannot be written: {error.strerror}; nothing was changed",
                hint="TMPDIR names another folder for it.",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        text = self._file.read_bytes() if self._file.exists() else b""
        if self._used or text in (b"", self._payload):
            shutil.rmtree(self._folder)
        else:
            self._file.chmod(0o600)
            click.echo(
                f"your text is kept; to use it: rdq-runner dlq redrive {self._task_id}"
                f" --payload-file {visible(shlex.quote(str(self._file)))}",
                err=True,
            )

    def edit(self) -> bytes | None:
        """Open the editor; return what is in the file afterwards, None if that is what it was.

        :raises Failure: the editor failed, or left nothing.
        """
        try:
            click.edit(filename=str(self._file))
            text = self._file.read_bytes()
        except click.ClickException as error:
            raise Failure(
                f"{error.format_message()}; nothing was changed",
                hint="VISUAL or EDITOR names the editor, such as EDITOR=nano.",
            ) from error
        except ValueError as error:
            raise Failure(
                f"VISUAL or EDITOR is no command: {error}; nothing was changed"
            ) from error
        except OSError as error:
            raise Failure(
                f"{self._file}: cannot be read: {error.strerror}; nothing was changed"
            ) from error
        if not self._payload.endswith(b"\n"):
            # Many editors end a last line that had no end.
            text = text.removesuffix(b"\r\n" if b"\r\n" in self._payload else b"\n")
            os.truncate(self._file, len(text))
        if self._payload and not text:
            raise Failure(
                "the file is empty; nothing was changed",
                hint=f"An empty payload is: rdq-runner dlq redrive {self._task_id} --payload ''.",
            )
        return None if text == self._payload else text

    def use(self) -> None:
        """Let the file go: what is in it has taken effect."""
        self._used = True
