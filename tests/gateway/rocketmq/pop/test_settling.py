"""Acknowledging, one by one and in batches, and receipts that are forged, stale or another's."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, strategies as st

from gateway.auth.credentials import Identity
from gateway.auth.permissions import Permissions
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.pop.settling import read_run
from tests.support.rocketmq_pop import ack, ask_change, change_invisible, pop


def fill(peer, count: int, **changes: object) -> None:
    for i in range(count):
        assert peer.send(b"m%d" % i, **changes).code == 0


def left(site, peer) -> list[bytes]:
    """Return the bodies of what is not done, when nothing is hidden any more."""
    site.now_ms += 600_000
    return [message.body for message in pop(peer)]


def forged(message, **changes: int):
    """Return the message with another receipt."""
    names = ("first", "pop", "invisible", "revive", "flag", "broker", "queue", "offset")
    parts = dict(zip(names, message.receipt.split(" "), strict=True))
    receipt = " ".join((parts | {name: str(value) for name, value in changes.items()}).values())
    return type(message)(message.body, receipt, message.attempts, message.queue_id, message.offset)


def test_an_acknowledgement_twice_is_as_good_as_once(site, peer):
    fill(peer, 2)
    first, _second = pop(peer)
    assert [ack(peer, first).code for _ in range(2)] == [0, 0]
    assert left(site, peer) == [b"m1"]


def test_a_receipt_that_is_stale_forged_or_anothers_changes_nothing(site, peer):
    fill(peer, 2)
    first, second = pop(peer)
    pop_ms = int(first.receipt.split(" ")[1])
    for wrong in (
        forged(first, pop=pop_ms - 1),
        forged(first, pop=0),
        forged(first, invisible=1),
        forged(first, pop=1 << 62),
    ):
        assert ack(peer, wrong).code == 0
        assert ask_change(peer, wrong, 0).code == 0
    assert ack(peer, first, consumerGroup="h").code == 0
    assert ack(peer, first, consumerGroup="").code == 0
    assert site.broker.pop.find(b"T/0", b"rocketmq:h") is None
    site.now_ms += 60_000
    again = pop(peer)
    assert [message.body for message in again] == [b"m0", b"m1"]
    assert (ack(peer, first).code, ack(peer, second).code) == (0, 0)
    assert ask_change(peer, first, 0).code == 0
    assert pop(peer) == []
    assert not any(ack(peer, message).code for message in again)
    assert left(site, peer) == []


@pytest.mark.parametrize("ask", [ack, lambda peer, message, **changes: ask_change(peer, message, 1_000, **changes)])
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "Unknown"}, 17),
        ({"queueId": 4}, 13),
        ({"queueId": -1}, 13),
        ({"offset": -1}, 208),
        ({"offset": 3}, 208),
        ({"offset": 1 << 62}, 208),
        ({"offset": "x"}, 1),
        ({"extraInfo": ""}, 1),
        ({"extraInfo": "0 1 2"}, 1),
        ({"extraInfo": "0 x 2 3 0 lmq 0 0"}, 1),
    ],
)
def test_what_cannot_be_is_refused_with_its_code(site, peer, ask, changes, code):
    fill(peer, 2)
    first, _second = pop(peer)
    answer = ask(peer, first, **changes)
    assert answer.code == code
    assert answer.remark
    assert left(site, peer) == [b"m0", b"m1"]


def test_an_invisible_time_that_cannot_be_is_refused(peer):
    fill(peer, 1)
    (message,) = pop(peer)
    assert [ask_change(peer, message, ms).code for ms in (-1, 1 << 50)] == [29, 29]
    assert change_invisible(peer, message, 0).body == b"m0"


# Batches


def batch(peer, *acks: object, **changes: object):
    body = {"brokerName": "lmq", "acks": list(acks)} | changes
    return peer.ask(200_151, json.dumps(body).encode())


def run_of(messages, *, topic: str = "T", group: str = "g") -> dict[str, object]:
    """Return what a proxy says of messages of one queue that were taken together."""
    start, pop_ms, invisible_ms, revive = (int(part) for part in messages[0].receipt.split(" ")[:4])
    bits = sum(1 << (message.offset - start) for message in messages)
    return {
        "c": group, "t": topic, "r": "0", "so": start, "q": messages[0].queue_id, "rq": revive, "pt": pop_ms,
        "it": invisible_ms, "b": base64.b64encode(bits.to_bytes(64, "little").rstrip(b"\0")).decode(),
    }  # fmt: skip


def test_a_batch_finishes_what_its_bits_name(site, peer):
    fill(peer, 20)
    messages = pop(peer)
    assert batch(peer, run_of(messages[:3] + messages[9:12]), run_of(messages[15:])).code == 0
    assert left(site, peer) == [b"m%d" % i for i in [*range(3, 9), *range(12, 15)]]


def test_a_batch_passes_over_what_is_not_there(site, peer):
    fill(peer, 2)
    messages = pop(peer)
    good = run_of(messages[:1])
    bits = base64.b64encode(bytes([255] * 8_000)).decode()
    elsewhere = [good | {"t": "Unknown"}, good | {"q": 99}, good | {"so": 1 << 60}, good | {"c": "h"}]
    assert batch(peer, *elsewhere, good | {"pt": 5, "b": bits}, good).code == 0
    assert left(site, peer) == [b"m1"]


def test_long_names_are_taken_too(site, peer):
    fill(peer, 1)
    run = run_of(pop(peer))
    names = {"c": "consumerGroup", "t": "topic", "so": "startOffset", "q": "queueId", "pt": "popTime",
             "it": "invisibleTime", "b": "bitSet"}  # fmt: skip
    assert batch(peer, {long: run[short] for short, long in names.items()}).code == 0
    assert left(site, peer) == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 208),
        (b"{}", 208),
        (b'{"acks":[]}', 208),
        (b'{"acks":{"c":"g"}}', 208),
        (b"[1]", 1),
        (b"{", 1),
        (b'{"acks":[{}]}', 1),
        (b'{"acks":[' + b"{}," * 5_000 + b"{}]}", 29),
        (b"[" * 100_000, 1),
    ],
)
def test_a_batch_that_says_nothing_is_refused(peer, body, code):
    assert peer.ask(200_151, body).code == code


SAID = st.dictionaries(
    st.sampled_from(["c", "t", "so", "q", "pt", "it", "b"]),
    st.one_of(st.none(), st.text(max_size=4), st.integers(), st.just("AQ=="), st.floats(), st.booleans(), st.just("g")),
)


@given(SAID)
def test_any_run_is_read_or_refused(said):
    try:
        run = read_run(said)
    except CommandRefusedError:
        return
    assert run.group
    assert run.topic
    assert min([0, run.queue_id, *run.offsets]) == 0


def test_a_client_that_may_not_read_a_queue_settles_nothing_of_it(site, peer):
    fill(peer, 1)
    messages = pop(peer)
    peer.handler.identity = Identity("", Permissions(subscribe=False))
    assert ack(peer, messages[0]).code == 16
    assert ask_change(peer, messages[0], 0).code == 16
    assert batch(peer, run_of(messages)).code == 16
    peer.handler.identity = Identity("", Permissions())
    assert left(site, peer) == [b"m0"]
