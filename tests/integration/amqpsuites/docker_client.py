"""What the suites of aio-pika and aiormq ask of Docker, in place of their own module: the server that is there already.

`LMQ_AMQP_PORT` and `LMQ_AMQPS_PORT` say where it listens.
"""

from __future__ import annotations

import os
from dataclasses import dataclass


class DockerNotAvailableError(Exception):
    """They catch it; it is never raised."""


class DockerHostInfo:
    """Where containers would be."""

    container_host = "127.0.0.1"


@dataclass
class ContainerInfo:
    """Where a server listens."""

    id: str
    ports: dict[str, int]
    host: str


def check_docker_available():
    """Return where containers would be."""
    return DockerHostInfo()


class DockerClient:
    """Starts nothing and ends nothing."""

    def __init__(self, *_):
        pass

    def run(self, *_, **__):
        """Return the server that is there."""
        ports = {"5672/tcp": int(os.environ["LMQ_AMQP_PORT"]), "5671/tcp": int(os.environ["LMQ_AMQPS_PORT"])}
        return ContainerInfo("none", ports, DockerHostInfo.container_host)

    def kill(self, _):
        """Do nothing."""

    remove = kill
