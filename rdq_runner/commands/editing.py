"""``rdq-runner dlq edit`` and ``dlq revert``: one dead letter is changed, and changed back."""

from base64 import b64decode
from dataclasses import dataclass, replace
from uuid import UUID

import click

from rdq_runner.commands import statements
from rdq_runner.commands.command import ask, collected, command, confirmed, on_terminal
from rdq_runner.commands.contents import Content
from rdq_runner.commands.dead_letters import task_id_argument
from rdq_runner.commands.drafts import Draft
from rdq_runner.commands.edits import (
    Edit,
    Target,
    as_argument,
    editor_options,
    is_json,
    revert_options,
    target_options,
)
from rdq_runner.commands.exits import Exit, Failure
from rdq_runner.commands.output import Output
from rdq_runner.commands.session import Row, Session
from rdq_runner.commands.times import relative
from rdq_runner.visible import visible


@dataclass(frozen=True, kw_only=True)
class _How:
    """How a command goes about it."""

    dry_run: bool
    yes: bool
    reason: str | None


_how_options = collected(
    "how",
    _How,
    click.option("--dry-run", is_flag=True, help="Show what would be changed."),
    click.option("--yes", is_flag=True, help="Do not ask."),
    click.option("--reason", help="Why, for the audit."),
)


@command(None, "edit", changes=True)
@task_id_argument
@editor_options
@target_options
@_how_options
def edit_dead_letter(
    session: Session,
    output: Output,
    task_id: UUID,
    edit: Edit,
    target: Target,
    how: _How,
) -> Exit:
    """Edit the payload of a dead letter in your editor, and put it back to work.

    VISUAL or EDITOR names the editor. It shows what you have changed, and asks. If the task was
    redriven meanwhile, or anything else goes wrong, nothing is changed and your text stays in a
    file. 'dlq revert' takes the edit back.

    \b
    Example:
      rdq-runner dlq edit 01980000-0000-7000-8000-000000000000 --reason 'completed by hand'
    """
    seen = _Seen.of(session, task_id)
    if isinstance(as_argument(seen.content.payload), bytes):
        raise Failure(
            f"the payload has {len(seen.content.payload)} bytes that are no text in UTF-8;"
            " nothing was changed",
            hint=f"Write it to a file: rdq-runner dlq show {task_id} --payload > FILE. Give another"
            f" one: rdq-runner dlq redrive {task_id} --payload-file FILE.",
        )
    content_type = edit.content_type or seen.content.content_type
    name = "payload.json" if is_json(content_type) else "payload.txt"
    with Draft(task_id, seen.content.payload, name) as draft:
        edited = _edited(draft, edit, content_type, yes=how.yes)
        if edited is None:
            return Exit.REFUSED
        status = seen.redrive(session, output, edited, target, how)
        if status is Exit.DONE:
            draft.use()
    return status


@command(None, "revert", changes=True)
@task_id_argument
@click.argument("audit_id", type=int, required=False)
@revert_options
@target_options
@_how_options
def revert_dead_letter(
    session: Session,
    output: Output,
    task_id: UUID,
    audit_id: int | None,
    edit: Edit,
    target: Target,
    how: _How,
) -> Exit:
    """Take back an edit of a dead letter, and put it back to work.

    Payload, content type and headers become what that edit has replaced, as far as it changed
    them: the last edit, or that with the number AUDIT_ID in the audit. It shows the difference, and
    asks. To revert is to edit, so that another revert takes it back in turn.

    \b
    Example:
      rdq-runner dlq revert 01980000-0000-7000-8000-000000000000 --reason 'it was right before'
    """
    seen = _Seen.of(session, task_id)
    last = _last_edit(session, task_id, audit_id)
    before = last["before"]
    click.echo(
        visible(f"edit {last['id']} of {last['actor']}, {relative(last['at'], session.now)}"),
        err=True,
    )
    if before.keys() & {"queue", "handler", "handler_version"}:
        click.echo(
            "it also sent the task elsewhere, where it stays: --to-queue, --to-handler and"
            " --to-version would send it back",
            err=True,
        )
    payload = before.get("payload")
    reverted = replace(
        edit,
        payload=None if payload is None else as_argument(b64decode(payload)),
        content_type=before.get("content_type"),
        headers=before.get("headers"),
    )
    return seen.redrive(session, output, reverted, target, how)


@dataclass(frozen=True)
class _Seen:
    """A dead letter as it was looked at."""

    task_id: UUID
    content: Content
    redrive_count: int

    @classmethod
    def of(cls, session: Session, task_id: UUID) -> "_Seen":
        """Look at it.

        :raises Failure: it is not dead.
        """
        envelope: Row = session.row(statements.envelope(task_id))["envelope"]
        if envelope["dead"] is None:
            raise Failure(
                f"task {task_id} is {envelope['status']}, not DEAD; nothing was changed",
                hint="Only a dead letter can be edited: 'task cancel' makes one of a live task.",
            )
        content = Content(
            payload=b64decode(envelope["payload"]),
            content_type=envelope["content_type"],
            headers=envelope["headers"],
        )
        return cls(task_id, content, envelope["dead"]["life"])

    def redrive(
        self, session: Session, output: Output, edit: Edit, target: Target, how: _How
    ) -> Exit:
        """Show what would be changed, ask, and do it unless the task was redriven meanwhile."""
        now = self.content.edited(edit)
        changed = now.unlike(self.content)
        if not changed:
            click.echo(
                "nothing differs, so nothing was changed: 'dlq redrive' puts it back as it is",
                err=True,
            )
            return Exit.NOTHING
        if how.dry_run and not output.is_table:
            changes = {"before": self.content.unlike(now), "after": changed}
            output.record({"task_id": self.task_id, **changes}, session.now)
        else:
            self.content.show_changes(now, err=not how.dry_run)
        if how.dry_run:
            return Exit.WOULD_CHANGE
        if not ask(f"Redrive it with this change{target}?", yes=how.yes):
            return Exit.REFUSED
        # What stays was taken when it was submitted, whatever the queue takes now.
        unchanged = dict.fromkeys(vars(now).keys() - changed.keys())
        arguments = {
            **edit.arguments(session),
            **unchanged,
            **target.arguments,
            "reason": how.reason,
            "expected_redrive_count": self.redrive_count,
        }
        row = session.row(statements.redrive(self.task_id, arguments))
        output.record({"task_id": self.task_id, **row}, session.now)
        return Exit.DONE


def _edited(draft: Draft, edit: Edit, content_type: str, *, yes: bool) -> Edit | None:
    """Return the edit with what the editor has left; None if it is wrong and is to stay so.

    :raises Failure: it cannot be, and there is nobody to ask whether to edit it again.
    """
    while True:
        text = draft.edit()
        edited = edit if text is None else replace(edit, payload=as_argument(text))
        try:
            edited.check(content_type)
        except Failure as failure:
            if yes or not on_terminal():
                raise
            click.echo(str(failure), err=True)
            if not confirmed("Edit it again?", default=True):
                return None
        else:
            return edited


def _last_edit(session: Session, task_id: UUID, audit_id: int | None) -> Row:
    """Return the row of the audit about an edit.

    :raises Failure: there is none.
    """
    for row in session.rows(statements.edits(task_id, audit_id, 1)):
        return row
    which = "no edit" if audit_id is None else f"no edit {audit_id}"
    raise Failure(
        f"the audit has {which} of task {task_id}; nothing was changed",
        Exit.NOTHING,
        "There was none, rdq.purge_audit has deleted it, or it was in a queue that you may not see:"
        f" rdq-runner audit --task {task_id} --wide shows what there is.",
    )
