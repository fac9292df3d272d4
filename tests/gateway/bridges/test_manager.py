from __future__ import annotations

import sys

import pytest

from gateway.app import Gateway
from gateway.bridge_settings import BridgeSettings
from gateway.settings import SettingsError
from tests.gateway.bridges.conftest import OFF
from tests.support.gateway import make_settings


def make(tmp_path, **changes):
    bridge = BridgeSettings(address="127.0.0.1:1", topics=[{"filter": "a"}], **changes)
    return Gateway(make_settings(tmp_path, bridges={"cloud": bridge}, **OFF))


@pytest.mark.asyncio
async def test_missing_library_is_named_and_only_where_there_is_a_bridge(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "aiomqtt", None)
    for name in ("gateway.bridges.bridge", "gateway.bridges.remote"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(SettingsError, match=r"bridges need aiomqtt.*pip install 'lmq-gateway\[bridge\]'"):
        make(tmp_path / "a")
    gateway = Gateway(make_settings(tmp_path / "b", **OFF))
    await gateway.start()
    await gateway.stop()


@pytest.mark.asyncio
async def test_password_whose_variable_is_not_set_is_told_at_the_start(tmp_path, monkeypatch):
    monkeypatch.delenv("LMQ_TEST_NONE", raising=False)
    with pytest.raises(SettingsError, match=r"bridges.cloud.password_env: LMQ_TEST_NONE is not set"):
        make(tmp_path, password_env="LMQ_TEST_NONE")
