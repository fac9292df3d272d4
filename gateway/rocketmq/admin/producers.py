"""The producers that are connected, by their groups.

Source: docs/protocols/rocketmq.md, "Tools".
"""

from __future__ import annotations

from collections.abc import Collection

from gateway.rocketmq.admin.group_figures import describe_client
from gateway.rocketmq.admin.works import Steps, check_size, stepwise
from gateway.rocketmq.client import Client
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import text_field
from lmq.remoting.commands import LANGUAGES, Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode


def producers_of(request: Command, clients: Collection[Client]) -> Steps:
    """Answer with the clients of a group of producers."""
    name = text_field(request, "producerGroup")
    found: list[dict[str, object]] = []
    for client, is_end in stepwise(list(clients)):
        if name in client.producer_groups:
            found.append(describe_client(client))
        if is_end:
            yield
    if not found:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"the producer group[{name}] not exist")
    return answer(request, ResponseCode.SUCCESS, body=check_size(encode_json({"connectionSet": found})))


def all_producers(request: Command, clients: Collection[Client], now_ms: int) -> Steps:
    """Answer with all producers by their groups."""
    found: dict[str, list[dict[str, object]]] = {}
    for client, is_end in stepwise(list(clients)):
        for name in client.producer_groups:
            shown = {
                "clientId": client.client_id,
                "language": LANGUAGES[client.language],
                "lastUpdateTimestamp": now_ms,
                "remoteIP": client.output.peer,
                "version": client.version,
            }
            found.setdefault(name, []).append(shown)
        if is_end:
            yield
    return answer(request, ResponseCode.SUCCESS, body=check_size(encode_json({"data": found})))
