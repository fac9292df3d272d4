from __future__ import annotations

import sys

import pytest
import typer

from gateway.commands.doors.choice import make_link
from gateway.commands.doors.place import Door, Place


@pytest.mark.parametrize(("door", "library"), [(Door.MQTT, "aiomqtt"), (Door.AMQP, "aio_pika")])
def test_a_library_that_is_missing_is_told_with_what_adds_it(monkeypatch, capsys, door, library):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"gateway.commands.doors.{door}", raising=False)
    with pytest.raises(typer.Exit) as ended:
        make_link(Place(door, "127.0.0.1", 1, None, None, "/", None, None))
    assert ended.value.exit_code == 2
    assert "pip install 'lmq-gateway[clients]'" in capsys.readouterr().err
