"""RocketMQ's tools at the door, and clients that they ask about."""

from __future__ import annotations

import json

from gateway.rocketmq.client import Client
from lmq.remoting.commands import LANGUAGES, Command, encode_command
from tests.support.rocketmq import request_frame
from tests.support.rocketmq_door import DoorSite, MemoryTransport, Peer

TURNS_MAX = 400


def join(site: DoorSite, client_id: str, group: str = "g", topic: str = "T", *, language: str = "JAVA") -> Peer:
    """Connect a client that consumes and produces."""
    peer = site.connect()
    wanted = {"topic": topic, "subString": "a || b", "subVersion": 1}
    data = {
        "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "subscriptionDataSet": [wanted],
    }  # fmt: skip
    said = {"clientID": client_id, "consumerDataSet": [data], "producerDataSet": [{"groupName": "p"}]}
    body = json.dumps(said).encode()
    peer.give(encode_command(Command(34, 1, body=body, language=LANGUAGES.index(language))))
    site.turn()
    peer.take()
    return peer


def start_tool(peer: Peer, code: int, body: bytes = b"", **ext: object) -> None:
    """Send a request without looking for its answer."""
    peer.give(request_frame(code, body, opaque=99, **ext))


def take_answer(peer: Peer) -> Command:
    """Return the answer, which may take some turns."""
    for _ in range(TURNS_MAX):
        peer.site.turn()
        answers = [command for command in peer.take() if command.is_response]
        if answers:
            (answer,) = answers
            assert answer.opaque == 99
            return answer
    raise AssertionError("no answer")


def ask_tool(peer: Peer, code: int, body: bytes = b"", **ext: object) -> Command:
    """Send a request and return its answer."""
    start_tool(peer, code, body, **ext)
    return take_answer(peer)


class Stranger:
    """A client that may neither read nor set anything up."""

    def __init__(self) -> None:
        self.transport = MemoryTransport(77)
        self.client = Client(self.transport)
        self.answers: list[Command] = []

    def answer(self, _request: Command, response: Command) -> None:
        self.answers.append(response)

    def settle(self, request: Command, work) -> None:
        response = work()
        if response is not None:
            self.answer(request, response)

    def may_read(self, _queue: bytes) -> bool:
        return False

    def may_configure(self, _name: bytes, _kind: str = "") -> bool:
        return False

    def find_administrator(self) -> None:
        return None
