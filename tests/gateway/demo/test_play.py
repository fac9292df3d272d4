from __future__ import annotations

import io

import pytest

pytest.importorskip("aio_pika")
pytest.importorskip("aiomqtt")

from rich.console import Console

from gateway.demo import play as play_module
from gateway.demo.ledger import Ledger
from gateway.demo.play import DemoFailedError, DemoOptions, make_room, play


def test_the_data_of_an_earlier_demo_makes_room(tmp_path):
    folder = tmp_path / "demo"
    make_room(folder)
    (folder / "commitlog").mkdir()
    (folder / "commitlog" / "0").touch()
    make_room(folder)
    assert [path.name for path in folder.iterdir()] == [".lmq-demo"]


def test_a_folder_of_others_is_left_alone(tmp_path):
    (tmp_path / "precious").touch()
    with pytest.raises(DemoFailedError, match="not made by the demo"):
        make_room(tmp_path)
    assert (tmp_path / "precious").exists()


async def played(tmp_path, **changes):
    console = Console(file=io.StringIO(), width=130)
    options = {"seconds": 1.5, "devices": 12, "rate": 10, "makes_report": False} | changes
    is_good = await play(DemoOptions(data_dir=tmp_path / "demo", report_dir=tmp_path / "report", **options), console)
    return is_good, console.file.getvalue()


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_short_demo_is_exact_at_every_consumer(tmp_path):
    is_good, said = await played(tmp_path)
    assert is_good, said
    assert said.count(" exact") == 7
    assert "nothing lost, nothing invented" in said


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_count_that_is_wrong_is_said_and_told(tmp_path, monkeypatch):
    class Forgetful(Ledger):
        def add_sent(self, key, topic, body):
            if key != (3, 2):
                super().add_sent(key, topic, body)

    monkeypatch.setattr(play_module, "Ledger", Forgetful)
    is_good, said = await played(tmp_path)
    assert not is_good
    assert "WRONG" in said
    assert "the counts do not agree" in said


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_client_that_fails_ends_the_demo_with_a_line(tmp_path, monkeypatch):
    async def fail(*_):
        raise ConnectionResetError("gone")

    monkeypatch.setattr(play_module.Fleet, "run", fail)
    monkeypatch.setattr(play_module, "_send_away", fail)
    is_good, said = await played(tmp_path)
    assert not is_good
    assert "a client failed: ConnectionResetError: gone" in said
