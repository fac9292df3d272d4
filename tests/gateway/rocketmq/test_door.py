from __future__ import annotations

import pytest

from gateway.door import Listen
from gateway.rocketmq.door import DELAY_INTERVAL_MS
from gateway.rocketmq.store_host import pack_address
from gateway.settings.models import GatewaySettings, RocketmqSettings
from tests.support.rocketmq_door import DoorSite


def test_broker_and_name_server_have_an_address_each(tmp_path):
    site = DoorSite(tmp_path / "d", RocketmqSettings(broker="[::1]:1", namesrv="off"))
    assert site.door.listens() == [Listen("broker", "[::1]:1")]
    site.close()


def choice(tmp_path, **tls):
    entry = {"address": "127.0.0.1:1", "tls": {"certificate": "a.pem", **tls}}
    site = DoorSite(tmp_path / "d", RocketmqSettings(broker=[entry], namesrv="off"))
    (listen,) = site.door.listens()
    return listen.tls.optional


def test_tls_is_a_choice_of_the_client_where_no_certificate_is_asked_for(tmp_path):
    assert choice(tmp_path) is True


def test_tls_is_a_must_where_the_settings_say_so_or_clients_need_a_certificate(tmp_path):
    assert choice(tmp_path, optional=False) is False


def test_a_certificate_of_clients_cannot_be_gone_round_without_tls(tmp_path):
    assert choice(tmp_path, client_ca="ca.pem") is False


def test_the_settings_have_the_last_word_on_clients_without_tls(tmp_path):
    assert choice(tmp_path, client_ca="ca.pem", optional=True) is True


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("bound", "port"),
    [({"broker": ("127.0.0.1", 7), "namesrv": ("127.0.0.1", 8)}, 7), ({"namesrv": ("127.0.0.1", 8)}, 8), ({}, 10_911)],
)
async def test_records_are_stamped_with_what_is_listened_on(site, bound, port):
    await site.door.on_listening(bound)
    assert site.store.store_host == pack_address("127.0.0.1", port)


def test_delayed_messages_are_looked_for_again_and_again(site, peer):
    interval = next(one for one in site.door.intervals() if one.interval_ms == DELAY_INTERVAL_MS)
    assert peer.send(b"late", properties="DELAY\x011\x02").code == 0
    interval.work(site.now_ms)
    site.settle()
    assert not peer.pull("T").body
    site.now_ms += 1_000 + interval.interval_ms
    interval.work(site.now_ms)
    site.settle()
    assert peer.pull("T").body


def test_transactions_are_looked_for_by_the_settings_of_now(site, peer):
    interval = next(one for one in site.door.intervals() if one.work == site.door.transactions.look)
    beat = b'{"clientID":"c","producerDataSet":[{"groupName":"p"}],"consumerDataSet":[]}'
    assert peer.ask(34, beat).code == 0
    assert peer.send(b"half", properties="TRAN_MSG\x01true\x02PGROUP\x01p\x02").code == 0
    site.door.reload(GatewaySettings(rocketmq=RocketmqSettings(transaction_timeout_ms=500)))
    interval.work(site.now_ms)  # the queue of half messages is opened
    site.settle()
    interval.work(site.now_ms + 499)
    assert peer.take() == []
    interval.work(site.now_ms + 500)
    site.turn()
    assert [command.code for command in peer.take()] == [39]


def test_other_settings_hold_for_connections_that_are_open(site, peer):
    site.door.reload(GatewaySettings(rocketmq=RocketmqSettings(body_bytes_max=4, connections_max=3)))
    assert peer.send(b"12345").code == 13
    assert peer.send(b"1234").code == 0
    assert site.door.limits.connections_max == 3


def test_a_stop_and_a_low_disk_ask_nothing_of_connections(site, peer):
    site.door.tend(site.now_ms)
    site.door.read_departed()
    site.door.stop(site.now_ms)
    assert not peer.transport.is_closed
