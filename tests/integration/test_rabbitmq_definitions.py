"""Definitions between a RabbitMQ that is installed here and the gateway; it runs beside CI, with `-m clients`."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from tests.benchmarks.scenarios.peers import PEERS, RABBIT_SCRIPTS, find_rabbitmq
from tests.support.commands import call_lmq
from tests.support.elsewhere import beside_ci
from tests.support.gateway import DOORS, GatewayProcess

WAIT_S = 30
LISTS = ("vhosts", "parameters", "policies", "exchanges", "queues", "bindings")
NOT_OURS = ("user ", "permissions ", "global parameter ")
DOCUMENT = {
    "vhosts": [{"name": "/"}, {"name": "of/plant", "description": "of the plant", "tags": ["a", "b"]}],
    "parameters": [
        {"component": "vhost-limits", "name": "limits", "vhost": "of/plant", "value": {"max-queues": 50}},
        {"component": "operator_policy", "name": "no-more", "vhost": "of/plant"}
        | {"value": {"pattern": ".", "apply-to": "queues", "priority": 0, "definition": {"max-length": 1_000}}},
    ],
    "policies": [
        {"name": "short", "vhost": "of/plant", "pattern": "^c", "apply-to": "queues", "priority": 3}
        | {"definition": {"max-length": 7, "dead-letter-exchange": "all"}}
    ],
    "exchanges": [
        {"name": name, "vhost": "of/plant", "type": kind, "durable": True, "auto_delete": False, "internal": False}
        | {"arguments": {"alternate-exchange": "topics"} if kind == "headers" else {}}
        for name, kind in (("topics", "topic"), ("headers", "headers"), ("all", "fanout"))
    ],
    "queues": [
        {"name": name, "vhost": "of/plant", "durable": True, "auto_delete": False, "arguments": arguments}
        for name, arguments in (
            ("classic", {"x-max-length": 5, "x-dead-letter-exchange": "all", "x-message-ttl": 1_000}),
            ("quorum", {"x-queue-type": "quorum", "x-delivery-limit": 3}),
            ("stream", {"x-queue-type": "stream", "x-max-age": "7D"}),
            ("priorities", {"x-max-priority": 5}),
        )
    ],
    "bindings": [
        {"source": source, "vhost": "of/plant", "destination": destination, "destination_type": kind}
        | {"routing_key": key, "arguments": arguments}
        for source, destination, kind, key, arguments in (
            ("topics", "classic", "queue", "a.#", {}),
            ("topics", "all", "exchange", "#", {}),
            ("headers", "quorum", "queue", "", {"x-match": "any", "n": 1, "t": "text", "b": True}),
        )
    ],
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.clients,
    beside_ci,
    pytest.mark.skipif(find_rabbitmq() is None, reason="RabbitMQ is not installed"),
]


@pytest.fixture(scope="module")
def rabbit():
    server = PEERS["rabbitmq"].start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with GatewayProcess(tmp_path_factory.mktemp("data"), doors=DOORS) as running:
        yield running


def rabbitmqctl(rabbit, *arguments):
    """Run RabbitMQ's own tool; return what it says."""
    conf = {"HOME": str(rabbit.folder), "RABBITMQ_CONF_ENV_FILE": str(rabbit.folder / "env.conf")}
    node = f"bench{rabbit.ports['amqp']}@localhost"
    epmd = {"ERL_EPMD_PORT": rabbit.beside[0].args[2], "RABBITMQ_NODENAME": node}
    tool = RABBIT_SCRIPTS.parent / "lib" / f"rabbitmq_server-{find_rabbitmq()}" / "sbin" / "rabbitmqctl"
    done = subprocess.run(
        [tool, "-n", node, *arguments], env={**os.environ, **conf, **epmd}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def lmq(gateway, *arguments, code=0):
    result = call_lmq(*arguments, "--admin", f"127.0.0.1:{gateway.port('admin')}")
    assert result.exit_code == code, result.stderr
    return result.stdout


def told(file):
    """Return what a file of definitions says, in one order, without what RabbitMQ leaves out where it is nothing."""
    found = json.loads(file.read_text())
    rows = {name: [] for name in LISTS}
    for name in LISTS:
        for row in found.get(name, []):
            kept = {key: value for key, value in row.items() if value not in ("", [], False, None)}
            kept.pop("metadata", None)
            kept.pop("description", None)
            kept.pop("tags", None)
            kept.pop("limits", None)
            if name == "queues":
                kept.pop("type", None)  # an argument says it
            if kept.get("vhost", "of/plant") == "of/plant":
                rows[name].append(json.dumps(kept, sort_keys=True))
    return {name: sorted(found) for name, found in rows.items()}


def test_what_rabbitmq_exports_is_imported_and_the_other_way_round(rabbit, gateway, tmp_path):
    first, of_rabbit, ours, back = (tmp_path / f"{name}.json" for name in ("first", "rabbit", "ours", "back"))
    first.write_text(json.dumps(DOCUMENT))
    rabbitmqctl(rabbit, "import_definitions", str(first))
    wait_for(lambda: export(rabbit, of_rabbit)["bindings"])
    lines = lmq(gateway, "definitions", "import", str(of_rabbit), code=3).splitlines()  # guest is left out
    assert lines[0] == "imported: 2 vhosts, 2 parameters, 1 policies, 3 exchanges, 4 queues, 3 bindings"
    assert all(line.removeprefix("not imported: ").startswith(NOT_OURS) for line in lines[1:])
    lmq(gateway, "definitions", "export", str(ours))
    assert told(ours) == told(of_rabbit) == told(first)
    rabbitmqctl(rabbit, "delete_vhost", "of/plant")
    rabbitmqctl(rabbit, "import_definitions", str(ours))
    wait_for(lambda: len(export(rabbit, back)["bindings"]) == 3)
    assert told(back) == told(ours)


def export(rabbit, file):
    file.unlink(missing_ok=True)
    rabbitmqctl(rabbit, "export_definitions", str(file))
    return json.loads(file.read_text())


def wait_for(is_so):
    until = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < until  # each look takes RabbitMQ's tool a second
