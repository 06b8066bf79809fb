"""How the commands take their options: a flag, else a variable, else the file, else the default.

Of the file's table ``[runner]`` the keys are the options of ``rdq-runner run``, with underscores;
its values are read as those of the flags are.
"""

import os
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from rdq_runner.configuration import (
    Configuration,
    ConfigurationError,
    Value,
    has_password,
    load,
    unknown,
)

F = TypeVar("F", bound=Callable[..., Any])

# A variable that is nearly one of ours is a slip; any other may be anybody's.
_ALIKE: Final = 0.8


def option(
    flag: str, variable: str, *, param: str | None = None, **attributes: Any
) -> Callable[[F], F]:
    """Make an option that is a variable of the environment too.

    :param param: the function's parameter, and the key in the file, where it is not the flag's.
    """
    names = [flag] if param is None else [flag, param]
    return click.option(*names, envvar=variable, show_envvar=True, **attributes)


def connection_options(command: F) -> F:
    """Give a command ``--dsn`` and ``--config``."""
    command = option(
        "--dsn",
        "RDQ_DSN",
        default="",
        callback=_check_dsn,
        help="Connection string or URI; what it leaves out comes from libpq's environment.",
    )(command)
    return option(
        "--config",
        "RDQ_CONFIG",
        type=click.Path(dir_okay=False, path_type=Path),
        is_eager=True,
        callback=_take_defaults,
        help="File in TOML: options of the runner, queues, endpoints.",
    )(command)


def queue_and_bound(text: str) -> tuple[str, int | None]:
    """Read a queue, and how many of its tasks may run at once: ``payments``, ``payments=4``.

    :raises click.BadParameter: the number is none, or not at least 1.
    """
    queue, given, bound = text.partition("=")
    if not given:
        return queue, None
    if not (bound.isascii() and bound.isdecimal() and int(bound) > 0):
        raise click.BadParameter(f"{text!r}: give at least 1, as in payments=4")
    return queue, int(bound)


def warn_of_slips(commands: list[click.Command]) -> None:
    """Say which variables of the environment are probably meant to be ours, and are not."""
    known = {
        str(parameter.envvar)
        for command in commands
        for parameter in command.params
        if parameter.envvar
    }
    for name in sorted(os.environ):
        if name.startswith("RDQ_") and name not in known:
            for close in get_close_matches(name, known, n=1, cutoff=_ALIKE):
                click.echo(f"warning: {name} does nothing: did you mean {close}?", err=True)


def _check_dsn(context: click.Context, parameter: click.Parameter, dsn: str) -> str:
    try:
        secret = has_password(dsn)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from None
    if secret and context.get_parameter_source("dsn") is ParameterSource.COMMANDLINE:
        click.echo(
            "warning: --dsn has a password, which every user of this machine can read: give it in"
            " RDQ_DSN or PGPASSWORD, in a password file, or name a service",
            err=True,
        )
    return dsn


def _take_defaults(
    context: click.Context, parameter: click.Parameter, path: Path | None
) -> Configuration | None:
    """Let what the file says be the defaults of the command's options."""
    if path is None:
        return None
    try:
        configuration = load(path)
        defaults = _runner_defaults(context, configuration)
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from error
    context.default_map = {**defaults, "dsn": configuration.dsn or ""}
    return configuration


def _runner_defaults(context: click.Context, configuration: Configuration) -> dict[str, Any]:
    root = context.find_root().command
    assert isinstance(root, click.Group)
    options = {
        str(option.name): option
        for option in root.commands["run"].params
        if option.name not in ("dsn", "config")
    }
    defaults, problems = {}, []
    for name, value in configuration.runner.items():
        try:
            if name not in options:
                raise click.BadParameter(unknown(name, options))
            defaults[name] = words = _words(options[name], value)
            options[name].type_cast_value(context, words)
        except click.BadParameter as error:
            problems.append(configuration.error(("runner", name), error.message))
    if problems:
        raise ConfigurationError("\n".join(problems))
    return defaults


def _words(option: click.Parameter, value: Value) -> str | list[str]:
    """Return what a flag would be given."""
    match value:
        case dict() if option.name == "queues":
            return [f"{queue}={_word(bound)}" for queue, bound in value.items()]
        case list() if getattr(option, "multiple", False):
            return [_word(item) for item in value]
        case _ if getattr(option, "multiple", False):
            raise click.BadParameter("give a list")
    return _word(value)


def _word(value: Value) -> str:
    match value:
        case dict() | list():
            raise click.BadParameter("give one value")
        case bool():
            return str(value).lower()
    return str(value)
