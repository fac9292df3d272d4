"""What operators ask of a group's clients: the broker asks the client, and hands its answer on.

Source: docs/protocols/rocketmq.md, "Tools".
"""

from __future__ import annotations

from functools import partial

from core.broker import Broker
from gateway.auth.rule import GROUP
from gateway.rocketmq.admin.queue_tables import cut_table
from gateway.rocketmq.admin.works import AdminPeer
from gateway.rocketmq.calls import Calls
from gateway.rocketmq.client import Client
from gateway.rocketmq.client_table import ClientTable
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import text_field
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode

PLACE_DIGITS = 16  # that a message id ends with
ID_DIGITS = (32, 56)
PLACE_END = 1 << 63  # Java's long is below
MEMBERS_MAX = 256  # of a group that are asked at once; chosen: one answer waits for all of theirs


class ClientCalls:
    """Answers GET_CONSUMER_RUNNING_INFO, CONSUME_MESSAGE_DIRECTLY and INVOKE_BROKER_TO_GET_CONSUMER_STATUS."""

    def __init__(self, broker: Broker, clients: ClientTable, calls: Calls, broker_name: str) -> None:
        self._broker = broker
        self._clients = clients
        self._calls = calls
        self._broker_name = broker_name

    def running_info(self, request: Command, peer: AdminPeer, now_ms: int) -> None:
        """Hand on what a client says of itself."""
        client = self._find_client(request, peer)
        self._forward(request, peer, client, Command(request.code, ext=request.ext), now_ms)

    def consume(self, request: Command, peer: AdminPeer, now_ms: int) -> None:
        """Let a client consume one message again; hand on how that went."""
        client = self._find_client(request, peer)
        ext = request.ext | {"brokerName": self._broker_name}
        place = _place_of(text_field(request, "msgId"))

        def give(record: bytes | None) -> None:
            if record is None:
                remark = f"can not find message by the offset, {place}"
                peer.answer(request, answer(request, ResponseCode.SYSTEM_ERROR, remark))
            else:
                self._forward(request, peer, client, Command(request.code, ext=ext, body=record), now_ms)

        self._broker.find_record(place, give)

    def _find_client(self, request: Command, peer: AdminPeer) -> Client:
        group, client_id = text_field(request, "consumerGroup"), text_field(request, "clientId")
        if not peer.may_configure(group.encode(), GROUP):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to ask clients of {group}")
        live = self._clients.find_group(group)
        members = live.members.values() if live is not None else ()
        client = next((member for member in members if member.client_id == client_id), None)
        if client is None:
            raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online")
        return client

    def _forward(self, request: Command, peer: AdminPeer, client: Client, command: Command, now_ms: int) -> None:
        self._calls.call(client, command, partial(_hand_on, request, peer), now_ms)

    # How far all clients are

    def statuses(self, request: Command, peer: AdminPeer, now_ms: int) -> None:
        """Answer with the offsets that each client of a group is at, by what the clients say."""
        group, topic = text_field(request, "group"), text_field(request, "topic")
        only = request.ext.get("clientAddr", "")
        if not peer.may_configure(group.encode(), GROUP):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to ask clients of {group}")
        live = self._clients.find_group(group)
        members = list(live.members.values())[:MEMBERS_MAX] if live is not None else []
        asked = [member for member in members if only in {"", member.client_id}]
        if not asked:
            raise CommandRefusedError(
                ResponseCode.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{group}]"
            )
        said: dict[str, bytes] = {}
        left = len(asked)

        def note(client_id: str, response: Command | None) -> None:
            nonlocal left
            left -= 1
            if response is not None and response.code == ResponseCode.SUCCESS:
                said[client_id] = cut_table(bytes(response.body), "messageQueueTable")
            if not left:
                table = b",".join(b"%b:%b" % (encode_json(name), rows) for name, rows in sorted(said.items()))
                body = b'{"consumerTable":{%b}}' % table
                peer.answer(request, answer(request, ResponseCode.SUCCESS, body=body))

        ext = {"group": group, "topic": topic}
        for member in asked:
            command = Command(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, ext=ext)
            self._calls.call(member, command, partial(note, member.client_id), now_ms)


def _hand_on(request: Command, peer: AdminPeer, response: Command | None) -> None:
    if response is None:
        said = f"consumer <{request.ext['consumerGroup']}> <{request.ext['clientId']}> Timeout"
        peer.answer(request, answer(request, ResponseCode.CONSUME_MSG_TIMEOUT, said))
        return
    body = bytes(response.body)
    peer.answer(request, answer(request, response.code, response.remark, ext=response.ext, body=body))


def _place_of(message_id: str) -> int:
    try:
        place = int(message_id[-PLACE_DIGITS:], 16) if len(message_id) in ID_DIGITS else -1
    except ValueError:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"{message_id[:64]} is not a message id") from None
    return place if place < PLACE_END else -1
