from __future__ import annotations

import json
import threading
from contextlib import contextmanager

import paho.mqtt.client as mqtt
import pytest

from tests.support.commands import call_lmq, check_told


@contextmanager
def stayed(gateway, client_id):
    """Have a client be there with its session."""
    host, port = gateway.address("mqtt")
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id, clean_session=False)
    came = threading.Event()
    client.on_connect = lambda *_: came.set()
    client.connect(host, port)
    client.loop_start()
    assert came.wait(10)
    yield
    client.disconnect()
    client.loop_stop()


@pytest.mark.slow
def test_clients_that_are_not_there_cannot_be_parted_with(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    check_told(call_lmq("connection", "close", "999999", "--admin", admin), "^lmq: no connection '999999'$", code=4)
    with stayed(running, "parted"):
        lost = "its subscriptions and the messages that wait for the client"
        told = f"^lmq: this deletes session 'parted' with {lost}; add --yes"
        check_told(call_lmq("session", "end", "parted", "--admin", admin), told)
        ended = call_lmq("session", "end", "parted", "--yes", "--json", "--admin", admin)
        assert (ended.exit_code, json.loads(ended.stdout)) == (0, {"ended": "parted"})
    check_told(call_lmq("session", "end", "no/body", "--admin", admin), "no session 'no/body'", code=4)
