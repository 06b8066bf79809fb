"""``python -m rdq_runner`` is the command ``rdq-runner``."""

from rdq_runner.cli import main

main()
