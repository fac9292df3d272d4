from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from gateway.commands.doors.place import Door, at_door


def _call(*arguments, default=Door.MQTT, env=None):
    cli = typer.Typer()
    seen = []

    @at_door(default)
    def command(place, name: str, *, count: int = 1) -> None:
        """Do it."""
        seen.append((place, name, count))

    cli.command()(command)
    result = CliRunner().invoke(cli, arguments, env=env)
    return result, seen


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        ((), "127.0.0.1:1883"),
        (("--tls",), "127.0.0.1:8883"),
        (("-d", "amqp"), "127.0.0.1:5672"),
        (("-d", "amqp", "--insecure"), "127.0.0.1:5671"),
        (("-d", "rocketmq", "--tls"), "127.0.0.1:9876"),
        (("-s", "there"), "there:1883"),
        (("-s", "there:7"), "there:7"),
        (("-s", "[::1]:7"), "[::1]:7"),
        (("-s", "::1"), "[::1]:1883"),
        (("-s", "[::1]"), "[::1]:1883"),
    ],
)
def test_a_place_has_the_usual_port_of_its_door(arguments, address):
    result, seen = _call("thing", "--count", "3", *arguments)
    assert result.exit_code == 0, result.output
    ((place, name, count),) = seen
    assert (place.address, name, count) == (address, "thing", 3)


def test_options_come_from_the_environment_and_mistakes_are_told():
    env = {"LMQ_CLI_SERVER": "there", "LMQ_CLI_USER": "ann", "LMQ_CLI_PASSWORD": "pw"}
    _, ((place, _, _),) = _call("thing", default=Door.AMQP, env=env)
    assert (place.address, place.user, place.password, place.vhost) == ("there:5672", "ann", "pw", "/")
    for wrong in ("there:x", "there:70000"):
        result, seen = _call("thing", "-s", wrong)
        assert result.exit_code == 2
        assert "give HOST or HOST:PORT" in result.stderr
        assert not seen
