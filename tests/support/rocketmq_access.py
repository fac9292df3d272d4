"""A RocketMQ door with users and rules in its data folder, and one administrator."""

from __future__ import annotations

import json
from pathlib import Path

from gateway.settings.models import UserSettings
from lmq.remoting.commands import Command
from lmq.remoting.signature import AccessKeys
from tests.support.rocketmq import request_frame, send_frame, signed
from tests.support.rocketmq_door import DoorSite, Peer
from tests.support.rocketmq_tools import take_answer

ROOT = AccessKeys("root", "root's own secret")
CREATE_USER, UPDATE_USER, DELETE_USER, GET_USER, LIST_USERS = range(3001, 3006)
CREATE_ACL, UPDATE_ACL, DELETE_ACL, GET_ACL, LIST_ACLS = range(3006, 3011)


def open_site(folder: Path, make_engine=None) -> DoorSite:
    """Open a site that nobody comes into without a name; `root` is of the settings."""
    root = UserSettings(secret=ROOT.secret_key, tags=("administrator",))
    site = DoorSite(folder, anonymous=False, users={"root": root}, make_engine=make_engine)
    site.authenticator.keep_users(site.broker.table("auth_users"))
    site.authenticator.rules.keep(site.broker.table("auth_rules"))
    return site


def ask_as(keys: AccessKeys, peer: Peer, code: int, said: object = None, **ext: object) -> Command:
    """Return the answer to a request that a user signs; `said` is its body."""
    body = b"" if said is None else json.dumps(said).encode()
    peer.give(signed(request_frame(code, body, opaque=99, **ext), keys))
    return take_answer(peer)


def send_as(keys: AccessKeys, peer: Peer, topic: str) -> int:
    """Return the code of the answer to a send."""
    peer.give(signed(send_frame(b"x", topic=topic, opaque=99), keys))
    return take_answer(peer).code


def pull_as(keys: AccessKeys, peer: Peer, topic: str, group: str = "g") -> Command:
    """Return the answer to a pull."""
    ext = {
        "consumerGroup": group, "topic": topic, "queueId": 0, "queueOffset": 0, "maxMsgNums": 1, "sysFlag": 0,
        "commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 0,
    }  # fmt: skip
    return ask_as(keys, peer, 11, **ext)
