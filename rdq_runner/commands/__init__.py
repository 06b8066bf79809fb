"""The command line for people who do not want to write SQL: a module a noun."""

from typing import Final

from rdq_runner.commands.audit import audit
from rdq_runner.commands.completion import completion
from rdq_runner.commands.dead_letters import dlq
from rdq_runner.commands.editing import edit_dead_letter, revert_dead_letter
from rdq_runner.commands.purging import purge
from rdq_runner.commands.queues import queue
from rdq_runner.commands.redrives import redrive
from rdq_runner.commands.redriving import redrive_dead_letters
from rdq_runner.commands.tasks import task
from rdq_runner.commands.top import top

COMMANDS: Final = (queue, dlq, redrive, task, audit, top, completion)

dlq.add_command(redrive_dead_letters)
dlq.add_command(edit_dead_letter)
dlq.add_command(revert_dead_letter)
dlq.add_command(purge)
