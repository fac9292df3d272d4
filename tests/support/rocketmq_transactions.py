"""Half messages, their ends, and producers that are asked about them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from gateway.settings.models import RocketmqSettings
from lmq.remoting.commands import Command
from tests.support.rocketmq import request_frame
from tests.support.rocketmq_door import DoorSite, Peer

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0

TIMEOUT_MS, INTERVAL_MS = 6_000, 30_000


def half(key: str = "k", group: str = "p", **said: object) -> str:
    own = {"UNIQ_KEY": key, "TRAN_MSG": "true", "PGROUP": group, **said}
    return "".join(f"{name}\x01{value}\x02" for name, value in own.items() if value is not None)


def send_half(
    peer: Peer, body: bytes = b"paid", topic: str = "T", key: str = "k", *, e: str = "0", **said: object
) -> Command:
    settle(peer.site)
    sent = peer.send(body, topic=topic, e=e, f="4", properties=half(key, **said))
    assert sent.code == 0, sent.remark
    return sent


def end_ext(sent: Command, how: int = COMMIT, **changes: object) -> dict[str, object]:
    return {
        "producerGroup": "p",
        "tranStateTableOffset": sent.ext["queueOffset"],
        "commitLogOffset": int(sent.ext["msgId"][16:], 16),
        "commitOrRollback": how,
        "fromTransactionCheck": "false",
        "msgId": sent.ext["transactionId"],
        "transactionId": sent.ext["transactionId"],
        **changes,
    }


def end(peer: Peer, sent: Command, how: int = COMMIT, **changes: object) -> Command:
    peer.give(request_frame(37, opaque=77, **end_ext(sent, how, **changes)))
    settle(peer.site)
    (answer,) = [command for command in peer.take() if command.is_response]
    assert answer.opaque == 77
    return answer


def settle(site: DoorSite) -> None:
    for _ in range(64):
        site.turn()
        if not site.broker.has_work:
            return
    raise AssertionError("the gateway finds no rest")


def wait(site: DoorSite, ms: int) -> None:
    site.now_ms += ms
    settle(site)


def beat(peer: Peer, *groups: str) -> None:
    said = {"clientID": "c", "producerDataSet": [{"groupName": group} for group in groups], "consumerDataSet": []}
    assert peer.ask(34, json.dumps(said).encode()).code == 0


def checks(peer: Peer) -> list[Command]:
    return [command for command in peer.take() if command.code == 39 and not command.is_response]


def killed(folder: Path, made: Path, **settings: object) -> DoorSite:
    """Return a gateway on what one leaves that is killed now."""
    shutil.copytree(folder, made)
    return DoorSite(made, RocketmqSettings(**settings))
