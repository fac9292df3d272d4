"""Groups are sent back, or on: their offsets are set here, and the clients that are connected are told.

Source: docs/protocols/rocketmq.md, "Tools".
"""

from __future__ import annotations

from collections.abc import Callable

from core.broker import Broker
from gateway.auth.rule import GROUP
from gateway.events import Kind
from gateway.rocketmq.admin.queue_tables import encode_queue, encode_table
from gateway.rocketmq.admin.works import AdminPeer, Steps, check_size, find_offset
from gateway.rocketmq.client_table import ClientTable
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import GROUP_BYTES_MAX, flag_field, integer_field, text_field
from gateway.rocketmq.moved_places import note_moved
from gateway.rocketmq.opened import opened
from gateway.rocketmq.topic_table import TopicTable, queue_key
from lmq.remoting.commands import FLAG_ONE_WAY, LANGUAGES, Command, answer, encode_json
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode

AT_THE_END = -1  # in place of a moment
QUEUE_ANY = -1
Seek = Callable[[bytes, bytes, int], bool]
LISTS_OFFSETS = LANGUAGES.index("CPP")  # clients of this language want a list in place of a table


class Resets:
    """Answers INVOKE_BROKER_TO_RESET_OFFSET.

    Args:
        broker: Where the queues are.
        topics: The topics.
        clients: The clients that are told.
        broker_name: Our name.
        seek: Lets a group that takes by POP go on from an offset of a queue: group, key, offset.
    """

    def __init__(self, broker: Broker, topics: TopicTable, clients: ClientTable, broker_name: str, seek: Seek) -> None:
        self._seek = seek
        self._broker = broker
        self._topics = topics
        self._clients = clients
        self._broker_name = broker_name

    def reset(self, request: Command, peer: AdminPeer, now_ms: int) -> Steps:
        """Let a group go on at a moment, or at an offset of one queue; answer with the offsets."""
        group, name = text_field(request, "group"), text_field(request, "topic")
        at_ms = integer_field(request, "timestamp", AT_THE_END)
        topic = self._topics.get(name.encode())
        if not 0 < len(group.encode()) <= GROUP_BYTES_MAX:
            raise CommandRefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "the group's name is impossible")
        if not peer.may_configure(group.encode(), GROUP):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to reset {group}")
        only = integer_field(request, "queueId", QUEUE_ANY)
        wanted = integer_field(request, "offset", AT_THE_END)
        count = max(topic.read_queues, topic.write_queues)
        if only >= count:
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, f"queueId[{only}] is illegal")
        goes_on = flag_field(request, "isForce", otherwise=True)
        offsets: dict[int, int] = {}
        for queue_id in range(count) if only < 0 else (only,):
            key = queue_key(name.encode(), queue_id)
            ref = self._broker.find_queue(key)
            offset = 0
            if ref >= 0:
                if not (yield from opened(self._broker, ref)):
                    raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, "the queue's ends cannot be told now")
                if only >= 0 and wanted >= 0:
                    offset = wanted
                elif at_ms < 0:
                    offset = self._broker.max_offset(ref)
                else:
                    offset = yield from find_offset(self._broker, ref, at_ms)
                    if offset < 0:
                        raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, "the offset cannot be told now")
                offset = max(self._broker.min_offset(ref), min(offset, self._broker.max_offset(ref)))
            before = self._broker.consumer_offsets.get(group.encode(), key)
            offsets[queue_id] = offset if goes_on or before is None else min(offset, before)
            yield
        for queue_id, offset in offsets.items():
            note_moved(self._broker, group.encode(), queue_key(name.encode(), queue_id), offset, now_ms)
        done = self._set(request, group, name, offsets)
        peer.actor().tell(Kind.GROUP_RESET, group=group, topic=name, offsets=[*offsets.items()])
        return done

    def _set(self, request: Command, group: str, topic: str, offsets: dict[int, int]) -> Command:
        for queue_id, offset in offsets.items():
            key = queue_key(topic.encode(), queue_id)
            self._broker.consumer_offsets.commit(group.encode(), key, offset, has_begun=True)
            self._seek(group.encode(), key, offset)
        rows = [(encode_queue(self._broker_name, topic, queue_id), offset) for queue_id, offset in offsets.items()]
        table = check_size(encode_table("offsetTable", rows, {}))
        self._push(request, group, topic, table, offsets)
        return answer(request, ResponseCode.SUCCESS, body=table)

    def _push(self, request: Command, group: str, topic: str, table: bytes, offsets: dict[int, int]) -> None:
        """Tell the group's clients that read what they are sent.

        Each lets go of the queues that it has, and goes on at these offsets.
        """
        live = self._clients.find_group(group)
        if live is None or (live.subscriptions and topic not in live.subscriptions):
            return
        entries = [
            {"brokerName": self._broker_name, "offset": offset, "queueId": queue_id, "topic": topic}
            for queue_id, offset in offsets.items()
        ]
        as_list = encode_json({"offsetTable": entries})
        ext = {
            "group": group,
            "isForce": request.ext.get("isForce", "true"),
            "timestamp": request.ext.get("timestamp", "-1"),
            "topic": topic,
        }
        for client in [member for member in live.members.values() if member.output.is_writable]:
            body = as_list if client.language == LISTS_OFFSETS else table
            client.send(Command(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, flag=FLAG_ONE_WAY, ext=ext, body=body))
