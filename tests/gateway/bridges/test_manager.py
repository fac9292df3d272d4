from __future__ import annotations

import sys

import pytest

from gateway.app import Gateway
from gateway.settings.bridges import BridgeSettings
from gateway.settings.models import MqttSettings, SettingsError
from tests.gateway.bridges.conftest import OFF
from tests.support.gateway import ANY_PORT, make_settings
from tests.support.waiting import until


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


UP = {"filter": "up/#"}
DOWN = {"filter": "down/#", "direction": "in"}


async def reload(site, gateway, **bridges):
    wanted = make_settings(site.tmp_path / "local", bridges=bridges, **OFF)
    await gateway.reload(wanted)


def sessions(gateway):
    return {session.client_id: set(session.subscriptions) for session in gateway.doors["mqtt"].sessions}


@pytest.mark.at_once(reason="looks at what a reload changes at once")
@pytest.mark.asyncio
async def test_bridges_come_change_and_go_while_the_gateway_runs(site):
    bridges = {}
    async with site.remote() as remote, site.local(bridges=bridges) as local:
        counts = local.broker.metrics.bridge
        one, two = site.bridge([UP, DOWN], client_id="one"), site.bridge([UP], client_id="two")
        await reload(site, local, one=one, two=two)
        assert sessions(local) == {b"$bridge/one": {b"up/#"}, b"$bridge/two": {b"up/#"}}  # at once
        await until(lambda: counts("one").is_connected and counts("two").is_connected)

        await reload(site, local, one=site.bridge([UP, {"filter": "more/#"}], client_id="one"), two=two)
        assert sessions(local) == {b"$bridge/one": {b"up/#", b"more/#"}, b"$bridge/two": {b"up/#"}}
        async with site.client(remote, "#") as there, site.client(local) as here:
            await here.publish("more/1", b"x", qos=1)
            await here.publish("up/1", b"y", qos=1)
            assert sorted(await site.take(there, 3)) == [("more/1", b"x"), ("up/1", b"y"), ("up/1", b"y")]
        assert (counts("one").connects, counts("two").connects) == (2, 1)  # a bridge that has not changed goes on

        await reload(site, local, two=two)
        assert sessions(local) == {b"$bridge/two": {b"up/#"}}
        assert list(local.broker.metrics.bridges) == ["two"]


@pytest.mark.asyncio
async def test_a_bridge_that_goes_gives_up_what_it_subscribed_to_there(site):
    bridges = {"one": site.bridge([DOWN], client_id="one")}
    async with site.remote() as remote, site.local(bridges=bridges) as local:
        await until(lambda: local.broker.metrics.bridge("one").is_connected)
        assert sessions(remote) == {b"one": {b"down/#"}}
        await reload(site, local, one=site.bridge([DOWN], client_id="other"))
        await until(lambda: local.broker.metrics.bridge("one").is_connected)
        assert sessions(remote) == {b"one": set(), b"other": {b"down/#"}}
        await reload(site, local)
        assert sessions(remote) == {b"one": set(), b"other": set()}
        assert sessions(local) == {}


@pytest.mark.asyncio
async def test_bridges_that_cannot_be_made_change_nothing(site, monkeypatch):
    monkeypatch.delenv("LMQ_TEST_NONE", raising=False)
    bridges = {"one": site.bridge([UP])}
    async with site.local(bridges=bridges) as local:
        with pytest.raises(SettingsError, match=r"bridges.two.password_env: LMQ_TEST_NONE is not set"):
            await reload(site, local, two=site.bridge([UP], password_env="LMQ_TEST_NONE"))
        assert local.settings.bridges == bridges
        assert sessions(local) == {b"$bridge/one": {b"up/#"}}


@pytest.mark.asyncio
async def test_session_that_is_refused_its_filters_does_not_hold_up_the_start(site):
    async with site.local(
        UP, DOWN | {"direction": "out"}, mqtt=MqttSettings(listen=ANY_PORT, subscription_count_max=1)
    ):
        pass
