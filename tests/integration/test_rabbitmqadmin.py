"""RabbitMQ's own command line, unchanged, against the admin API."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from tests.support.gateway import DOORS, GatewayProcess

PROGRAM = shutil.which("rabbitmqadmin")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason="there is no rabbitmqadmin here")]


@pytest.fixture(scope="module")
def admin(tmp_path_factory):
    with GatewayProcess(tmp_path_factory.mktemp("data"), doors=DOORS) as gateway:

        def run(*arguments, code=0, **options):
            command = [sys.executable, PROGRAM, "-P", str(gateway.port("admin")), "-H", "127.0.0.1", *arguments]
            result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)
            assert result.returncode == code, result.stdout + result.stderr
            return result.stdout if code == 0 else result.stdout + result.stderr

        yield run


def _rows(admin, *arguments):
    return json.loads(admin("-f", "raw_json", *arguments))


def test_things_are_declared_listed_and_deleted(admin):
    assert "queue declared" in admin("declare", "queue", "name=jobs", "durable=true", 'arguments={"x-max-length": 7}')
    assert "exchange declared" in admin("declare", "exchange", "name=work", "type=topic")
    assert "binding declared" in admin("declare", "binding", "source=work", "destination=jobs", "routing_key=a.#")
    assert {"name": "jobs", "messages": 0} in _rows(admin, "list", "queues", "name", "messages")
    assert "work" in admin("list", "exchanges")
    assert {"source": "work", "destination": "jobs", "routing_key": "a.#"} in _rows(
        admin, "list", "bindings", "source", "destination", "routing_key"
    )
    assert "jobs" in admin("-V", "/", "list", "queues", "name", "messages_ready")
    assert "lmq@" in admin("list", "nodes")
    assert "object_totals.queues" in admin("show", "overview")
    admin("delete", "binding", "source=work", "destination=jobs", "destination_type=queue", "properties_key=a.#")
    admin("delete", "exchange", "name=work")
    admin("delete", "queue", "name=jobs")
    assert "Not found" in admin("delete", "queue", "name=jobs", code=1)


def test_messages_are_published_got_and_purged(admin):
    admin("declare", "queue", "name=letters")
    assert "Message published" in admin("publish", "routing_key=letters", "payload=hello")
    assert "NOT routed" in admin("publish", "routing_key=nobody", "payload=hello")
    assert "hello" in admin("get", "queue=letters", "ackmode=ack_requeue_true")
    assert "hello" in admin("get", "queue=letters", "ackmode=ack_requeue_false")
    admin("publish", "routing_key=letters", input="from stdin")
    assert "queue purged" in admin("purge", "queue", "name=letters")
    assert {"name": "letters", "messages": 0} in _rows(admin, "list", "queues", "name", "messages")
    admin("delete", "queue", "name=letters")


def test_another_password_is_refused(admin):
    assert "Access refused" in admin("-p", "wrong", "list", "queues", code=1)


def test_definitions_are_exported_and_imported(admin, tmp_path):
    admin("declare", "queue", "name=kept")
    saved = tmp_path / "definitions.json"
    admin("export", str(saved))
    admin("delete", "queue", "name=kept")
    admin("import", str(saved))
    assert {"name": "kept"} in _rows(admin, "list", "queues", "name")
