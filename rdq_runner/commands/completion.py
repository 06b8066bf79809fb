"""``rdq-runner completion``: the script that completes commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

PROGRAM = "rdq-runner"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in a shell.

    \b
    Example:
      rdq-runner completion bash

    \b
    Where it goes:
      bash: rdq-runner completion bash > ~/.local/share/bash-completion/completions/rdq-runner
      zsh:  rdq-runner completion zsh > a file "_rdq-runner" in a folder of $fpath
      fish: rdq-runner completion fish > ~/.config/fish/completions/rdq-runner.fish
    """
    made = get_completion_class(shell)
    assert made is not None
    variable = f"_{PROGRAM.replace('-', '_').upper()}_COMPLETE"
    click.echo(made(context.find_root().command, {}, PROGRAM, variable).source())
