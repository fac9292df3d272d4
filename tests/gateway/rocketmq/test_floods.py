"""However much one client sends at once, the others are served in between, and it is answered whole and in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.message import STEP_DISPATCHES
from gateway.rocketmq.client_table import OBJECT_BYTES_MAX
from gateway.rocketmq.send import ROUTES_A_LOOK
from tests.support.rocketmq import request_frame, send_frame
from tests.support.rocketmq_door import SUBSCRIBED, DoorSite, Peer

COUNT = 1000

PULL = {
    "consumerGroup": "g",
    "topic": "%LMQ%q",
    "queueId": 0,
    "queueOffset": 0,
    "maxMsgNums": 32,
    "sysFlag": SUBSCRIBED,
    "commitOffset": 0,
    "suspendTimeoutMillis": 0,
    "subscription": "*",
    "subVersion": 0,
}
FLOODS: dict[str, Callable[[int], bytes]] = {
    "pull": lambda i: request_frame(11, opaque=i, **PULL),
    "query offset": lambda i: request_frame(14, opaque=i, consumerGroup=f"g{i}", topic="%LMQ%q", queueId=0),
    "update offset": lambda i: request_frame(
        15, opaque=i, consumerGroup=f"g{i}", topic="%LMQ%q", queueId=0, commitOffset=i
    ),
    "get route": lambda i: request_frame(105, opaque=i, topic=f"T{i}"),
    "heartbeat": lambda i: request_frame(34, heartbeat(f"g{i}", 1), opaque=i),
    "send to new topics": lambda i: send_frame(b"x", opaque=i, b=f"New{i}"),
    "send to new light queues": lambda i: send_frame(b"x", opaque=i, b=f"%LMQ%new{i}"),
    "unknown requests": lambda i: request_frame(9_999, opaque=i),
}


def heartbeat(group: str, count: int) -> bytes:
    wanted = [{"topic": f"T{i}", "subString": "a || b", "subVersion": 1} for i in range(count)]
    groups = [{"groupName": group, "subscriptionDataSet": wanted}]
    return json.dumps({"clientID": f"client of {group}", "consumerDataSet": groups}).encode()


@pytest.fixture
def site(tmp_path: Path, engine_maker) -> Iterator[DoorSite]:
    site = DoorSite(tmp_path, make_engine=engine_maker)
    yield site
    site.close()


def is_served(site: DoorSite, other: Peer) -> bool:
    """Return whether another client's request is answered at once."""
    del site
    return other.ask(30, topic="%LMQ%live", queueId=0).code == 0


@pytest.mark.at_once(reason="looks at the order in which requests of one connection are answered")
@pytest.mark.parametrize("kind", FLOODS)
def test_others_are_served_before_a_flood_is_through(site: DoorSite, kind: str) -> None:
    other, flooder = site.connect(), site.connect()
    flooder.send(b"x", b="%LMQ%q")
    flooder.transport.share = 10
    flooder.begin(b"".join(FLOODS[kind](i) for i in range(COUNT)))
    turns = 0
    while flooder.has_more:
        assert is_served(site, other)
        flooder.go_on()
        turns += 1
    looks = COUNT // ROUTES_A_LOOK if kind.startswith("send to new") else COUNT
    assert turns >= looks // 12 > 0
    site.turn()
    answers = [command for command in flooder.take() if command.is_response]
    assert [command.opaque for command in answers if command.opaque < COUNT] == [*range(COUNT)]


def test_heartbeat_with_thousands_of_subscriptions_lets_others_be_served_and_is_answered_once(site: DoorSite) -> None:
    other, flooder = site.connect(), site.connect()
    flooder.transport.share = 20
    flooder.begin(request_frame(34, heartbeat("g", 1_000), opaque=1) + request_frame(9_999, opaque=2))
    while flooder.has_more:
        assert not flooder.take()
        assert is_served(site, other)
        flooder.go_on()
        if flooder.transport.written:
            break
    while flooder.has_more:
        flooder.go_on()
    assert [(command.code, command.opaque) for command in flooder.take() if command.is_response] == [(0, 1), (3, 2)]
    assert site.door.clients.find_subscription("g", "T999").version == 1


def test_heartbeat_that_is_too_large_is_refused(site: DoorSite) -> None:
    body = b'{"clientID": "' + b"x" * OBJECT_BYTES_MAX + b'"}'
    assert site.connect().ask(34, body).code == 1


def test_wide_sends_are_stored_a_few_at_a_time(site: DoorSite) -> None:
    peer = site.connect()
    queues = 500
    step = STEP_DISPATCHES // queues
    for i in range(queues):
        site.broker.bind_filter(b"t", b"%%LMQ%%q%d" % i, hides_dollar=False)
    peer.transport.share = 1
    frames = [send_frame(b"x", opaque=i, b="LMQ_PARENT", e=0, i="LMQ_TOPIC\x01t\x02") for i in range(5 * step)]
    peer.begin(b"".join(frames))
    assert 0 < site.store.message_count <= step
    while peer.has_more:
        peer.go_on()
    assert site.store.message_count == 5 * step
    site.turn()
    assert [(command.code, command.opaque) for command in peer.take()] == [(0, i) for i in range(5 * step)]


def test_one_that_does_not_read_its_answers_is_given_no_more(site: DoorSite) -> None:
    peer = site.connect()
    peer.send(b"x" * 1_000, b="%LMQ%q")
    peer.transport.is_writable = False
    peer.begin(b"".join(request_frame(11, opaque=i, **PULL) for i in range(20)))
    assert peer.has_more
    assert not peer.transport.is_reading
    peer.transport.is_writable = True
    peer.handler.on_writable(site.now_ms)
    while peer.has_more:
        peer.go_on()
    site.turn()
    assert sorted(command.opaque for command in peer.take()) == [*range(20)]
