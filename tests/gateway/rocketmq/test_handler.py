from __future__ import annotations

import json

import pytest

from core.errors import LmqError
from gateway.settings.models import RocketmqSettings
from lmq.remoting.commands import FLAG_RESPONSE, HEADER_BINARY, Command, encode_command
from lmq.remoting.message_codec import decode_records
from tests.support.rocketmq import request_frame, send_frame
from tests.support.rocketmq_door import SUBSCRIBED, SUSPENDED, DoorSite, records_of


@pytest.mark.parametrize("code", [0, -1, 3, 99, 323, 200_070, 2**31 - 1])
def test_an_unknown_request_is_answered_3_and_the_connection_goes_on(peer, code):
    assert peer.ask(code).code == 3
    assert not peer.transport.is_closed
    assert peer.ask(105, topic="TBW102").code == 0


def test_one_way_requests_get_no_answer_not_even_an_error(site, peer):
    for code in (15, 999, 105, 34, 11):
        peer.give(request_frame(code, flag=2))
    site.turn()
    assert peer.take() == []


def test_answers_of_a_peer_are_let_go(site, peer):
    peer.give(encode_command(Command(0, 5, FLAG_RESPONSE)))
    site.turn()
    assert peer.take() == []


def test_answers_come_in_the_encoding_of_their_requests(peer):
    peer.give(request_frame(105, opaque=9, header_type=HEADER_BINARY, topic="TBW102"))
    (answer,) = peer.take()
    assert (answer.header_type, answer.opaque, answer.code) == (HEADER_BINARY, 9, 0)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01", b"\xff" * 40])
def test_a_peer_that_sends_no_frames_is_closed_and_nobody_else(site, peer, data):
    other = site.connect()
    other.send(b"before")
    peer.give(send_frame(b"kept", opaque=1) + data)
    site.turn()
    assert peer.transport.is_closed
    assert [answer.code for answer in peer.take()] == [0]
    assert site.door.metrics.refused == {"malformed_frame": 1}
    assert [record.body for record in records_of(other.pull("T"))] == [b"before", b"kept"]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", ", but HTTP"),
        (b"AMQP\x00\x00\x09\x01", ", but AMQP"),
        (b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00", ", but MQTT"),
        (b"\xff" * 40, ""),
    ],
)
def test_the_log_says_which_protocol_came_to_the_wrong_door(peer, caplog, data, name):
    peer.give(data)
    assert [record.message.partition("reason=")[2] for record in caplog.records if "malformed" in record.message] == [
        f"impossible length or header type{name}"
    ]


def test_what_comes_behind_requests_is_a_broken_frame_whatever_it_looks_like(peer, caplog):
    peer.give(send_frame(b"kept", opaque=1))
    peer.give(b"GET / HTTP/1.1\r\n\r\n")
    assert "HTTP" not in caplog.text


def test_numbers_and_booleans_in_fields_are_understood(site, peer):
    peer.send(b"x")
    ext = {"consumerGroup": "g", "topic": "T", "queueId": 0, "commitOffset": 1, "setZeroIfNotFound": False}
    header = json.dumps({"code": 15, "extFields": ext, "opaque": 3, "flag": 0, "language": "JAVA", "version": 121})
    data = header.encode()
    peer.give((4 + len(data)).to_bytes(4, "big") + len(data).to_bytes(4, "big") + data)
    (answer,) = peer.take()
    assert (answer.code, answer.opaque) == (0, 3)
    assert site.broker.consumer_offsets.get(b"g", b"T/0") == 1


def test_a_core_error_is_answered_by_its_code(site, peer):
    peer.send(b"x")

    def refuse(*_: object) -> None:
        raise LmqError("no")

    site.broker.consumer_offsets.commit = refuse
    answer = peer.ask(15, consumerGroup="g", topic="T", queueId=0, commitOffset=1)
    assert (answer.code, answer.remark) == (1, "no")


def test_settings_name_broker_and_cluster_and_say_whether_sends_make_topics(tmp_path, engine_maker):
    site = DoorSite(
        tmp_path / "d",
        RocketmqSettings(broker_name="b-7", cluster_name="c-7", auto_create_topics=False),
        make_engine=engine_maker,
    )
    peer = site.connect()
    said = json.loads(bytes(peer.ask(106).body))
    assert said["clusterAddrTable"] == {"c-7": ["b-7"]}
    assert peer.send().code == 17
    assert peer.ask(105, topic="T").code == 17
    site.close()


def test_a_frame_larger_than_the_settings_allow_costs_its_connection(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", RocketmqSettings(frame_bytes_max=1_024), make_engine=engine_maker)
    peer, other = site.connect(), site.connect()
    peer.give((1_025).to_bytes(4, "big") + bytes(4))
    assert peer.transport.is_closed
    assert other.send().code == 0
    site.close()


def test_a_silent_connection_is_closed_and_one_with_held_pulls_is_not(site, peer):
    handler = peer.handler
    handler.on_timer(site.now_ms)
    idle_ms = RocketmqSettings().idle_timeout_ms
    assert handler.next_deadline_ms() == site.now_ms + idle_ms
    peer.send()
    peer.start_pull("T", 1, sysFlag=6, suspendTimeoutMillis=500_000)
    site.settle()
    handler.on_timer(site.now_ms + 400_000)
    assert not peer.transport.is_closed
    handler.on_timer(site.now_ms + 500_000)
    assert len(peer.take()) == 1
    handler.on_timer(site.now_ms + 500_000 + idle_ms)
    assert peer.transport.is_closed


def test_a_heartbeat_names_the_client_and_others_hear_when_it_goes(site, peer):
    said = {"clientID": "c1", "consumerDataSet": [{"groupName": "g", "subscriptionDataSet": []}]}
    assert peer.ask(34, json.dumps(said).encode()).code == 0
    other = site.connect()
    other.ask(34, json.dumps(said | {"clientID": "c2"}).encode())
    assert [command.code for command in peer.take()] == [40]
    assert json.loads(bytes(peer.ask(38, consumerGroup="g").body)) == {"consumerIdList": ["c1", "c2"]}
    other.close()
    assert [command.code for command in peer.take()] == [40]
    assert site.door.metrics.connections == 1


def test_a_group_that_comes_waits_and_leaves_leaves_nothing_behind(site, peer):
    said = {"clientID": "c1", "consumerDataSet": [{"groupName": "g", "subscriptionDataSet": []}]}
    peer.ask(34, json.dumps(said).encode())
    assert peer.ask(105, topic="%RETRY%g").code == 0
    peer.start_pull("%RETRY%g", sysFlag=SUBSCRIBED | SUSPENDED)
    assert len(peer.handler.held) == 1
    peer.close()
    assert len(site.store.table("rocketmq_topics")) == 0
    assert site.store.queue_count() == 0
    assert len(site.broker._awaited) == 0


def test_a_client_without_a_name_is_refused_where_the_settings_say_so(tmp_path, engine_maker, caplog):
    site = DoorSite(tmp_path / "d", anonymous=False, make_engine=engine_maker)
    peer = site.connect()
    assert peer.send(b"x").code == 16
    assert peer.ask(105, topic="TBW102").code == 16
    peer.send(b"x")
    peer.close()
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "login refused conn=1 peer=127.0.0.1:10911 client= user= reason=anonymous clients are not let in",
    ]
    site.close()


def test_records_of_a_run_carry_the_peer_as_their_born_host(peer):
    peer.send(b"x")
    (record,) = decode_records(bytes(peer.pull("T").body))
    assert record.born_host == b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
