"""A PostgreSQL with pgTAP in a container, where a Docker engine answers."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import docker
import psycopg
from docker.errors import APIError, BuildError, DockerException
from testcontainers.core.container import DockerContainer
from testcontainers.core.image import DockerImage

ROOT = Path(__file__).parents[1]
READY_SECONDS = 60

Command = Callable[[Sequence[str], Mapping[str, str]], int]


def start(
    stack: ExitStack, major: int, settings: Mapping[str, object]
) -> tuple[str, Command] | None:
    """Run the image of tests/Dockerfile until the stack is closed.

    :return: the superuser's DSN, and a function that runs a command with an environment in the
        container, beside a copy of the tests, and returns its exit code. None: there is no engine,
        or the image cannot be built.
    """
    if not _engine_answers():
        return None
    base = os.environ.get("RDQ_TEST_BASE_IMAGE", f"postgres:{major}")
    image = DockerImage(
        path=ROOT / "tests",
        tag=f"rdq-test-postgres:{major}",
        buildargs={"BASE": base},
        clean_up=False,
    )
    try:
        image.build()
        container = stack.enter_context(_container(str(image), settings))
    except (APIError, BuildError) as error:
        print(f"No container over {base}: {error}", flush=True)
        return None
    host, port = container.get_container_host_ip(), container.get_exposed_port(5432)
    dsn = f"host={host} port={port} user=postgres password=rdq dbname=postgres"
    _wait_until_ready(dsn)

    def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
        wrapped = container.get_wrapped_container()
        api = wrapped.client.api
        execution = api.exec_create(wrapped.id, command, environment=environment, workdir="/")["Id"]
        for chunk in api.exec_start(execution, stream=True):
            sys.stdout.buffer.write(chunk)
            sys.stdout.flush()
        return int(api.exec_inspect(execution)["ExitCode"])

    return dsn, run


def _container(image: str, settings: Mapping[str, object]) -> DockerContainer:
    return (
        DockerContainer(image)
        .with_env("POSTGRES_PASSWORD", "rdq")
        .with_env("POSTGRES_INITDB_ARGS", "--encoding=UTF8 --locale=C.UTF-8")
        .with_volume_mapping(ROOT / "pgtap_tests", "/pgtap_tests", "ro")
        .with_exposed_ports(5432)
        .with_command(["postgres", *(f"--{name}={value}" for name, value in settings.items())])
    )


def _engine_answers() -> bool:
    try:
        return bool(docker.from_env(timeout=5).ping())
    except DockerException:
        return False


def _wait_until_ready(dsn: str) -> None:
    """The image starts the server twice; the first one has no port."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            return psycopg.connect(dsn, connect_timeout=5).close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
