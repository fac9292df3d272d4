from __future__ import annotations

import pytest

from gateway.rocketmq import request_modes
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.request_modes import PULLS, RequestMode
from tests.support.rocketmq_door import DoorSite


def test_modes_outlive_the_process(tmp_path, engine_maker):
    for expected in (PULLS, RequestMode("POP", 3)):
        site = DoorSite(tmp_path / "data", make_engine=engine_maker)
        modes = request_modes.RequestModes(site.broker.table("rocketmq_request_modes"))
        assert modes.get("T", "g") == expected
        modes.set("T", "g", RequestMode("POP", 3))
        site.turn()
        site.close()


def test_there_are_no_more_than_so_many_and_what_pulls_takes_no_room(site, monkeypatch):
    monkeypatch.setattr(request_modes, "MODES_MAX", 1)
    modes = request_modes.RequestModes(site.broker.table("rocketmq_request_modes"))
    modes.set("T", "g", RequestMode("POP"))
    with pytest.raises(CommandRefusedError):
        modes.set("T", "h", RequestMode("POP"))
    modes.set("T", "h", PULLS)
    modes.set("T", "g", PULLS)
    modes.set("T", "h", RequestMode("POP"))
    assert modes.get("T", "g") == PULLS
