from __future__ import annotations

import pytest

from gateway.rocketmq.transactions import endings
from lmq import TransactionProducer, TransactionState
from tests.support.admin import managed_gateway
from tests.support.fates import fate_when_done

pytestmark = pytest.mark.asyncio


def _answering(state):
    async def answer(*_):
        return state

    return answer


async def _end_some(gateway, states, topic="Pay"):
    """Send a half message for each state and end it so; return their ids in that order."""
    namesrv = ":".join(map(str, gateway.listening["namesrv"]))
    async with TransactionProducer(namesrv, "payers", check=_answering(TransactionState.UNKNOWN)) as payers:
        sent = [await payers.send_in_transaction(topic, b"%d" % n, _answering(s)) for n, s in enumerate(states)]
    return [one.sent.msg_id for one in sent]


async def test_a_half_message_says_how_its_transaction_ended_and_as_which_message_also_after_a_restart(tmp_path):
    commit, rollback = TransactionState.COMMIT, TransactionState.ROLLBACK
    async with managed_gateway(tmp_path) as (gateway, client):
        numbers = await _end_some(gateway, (commit, rollback, commit, rollback))
        before = [await fate_when_done(client, number) for number in numbers]
    async with managed_gateway(tmp_path) as (_, client):
        after = [await fate_when_done(client, number) for number in numbers]
        bodies = [(await client.get(f"/api/lmq/messages/{one['became']}")).json()["body"] for one in after[::2]]
    assert before == after
    assert [one["outcome"] for one in after] == [
        "its transaction was committed",
        "its transaction was rolled back",
        "its transaction was committed",
        "its transaction was rolled back",
    ]
    assert bodies == ["0", "2"]
    assert [one["became"] for one in after[1::2]] == [None, None]
    assert all(one["from_ms"] == one["until_ms"] > 0 for one in after)
    assert after[0]["note"].startswith(f"as message {after[0]['became']} in Pay/")


async def test_what_an_earlier_version_ended_is_said_to_have_ended_and_no_more(tmp_path, monkeypatch):
    done_properties = endings.done_properties
    monkeypatch.setattr(endings, "done_properties", lambda _: done_properties(b""))
    async with managed_gateway(tmp_path) as (gateway, client):
        numbers = await _end_some(gateway, (TransactionState.COMMIT, TransactionState.ROLLBACK))
        fates = [await fate_when_done(client, number) for number in numbers]
    assert {one["outcome"] for one in fates} == {
        "its transaction ended: committed, as a message of its own, or rolled back, or given up"
    }
