"""Messages for later: `$delayed/<seconds>/<topic>`, as EMQX has it.

Source: docs/protocols/mqtt.md, "Delayed messages".
"""

from __future__ import annotations

from core.broker import Broker
from core.message import FLAG_RETAIN, PublishBatch, Route
from core.properties import WAITING_FOR, encode_properties
from core.schedule.hand_on import Destination
from core.schedule.slots import TIMER_TOPIC, encode_due
from gateway.mqtt.errors import MalformedPacketError
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import DELAYED_PREFIX

SECOND_MS = 1_000
_DIGITS_MAX = 10  # of `seconds_max`: more are no number that is taken
_FLAG_RETAIN_LATER = 0x20  # beside the bits of `core.message`: the message is retained when it comes


class Delayed:
    """Which messages are for later, and where they go when their time comes."""

    def __init__(self, broker: Broker) -> None:
        self.seconds_max = 0
        self._broker = broker
        broker.timer.resolve(WAITING_FOR, self._resolve)

    def split(self, topic: bytes) -> tuple[int, bytes]:
        """Return the seconds and the topic that `topic` names.

        Raises:
            MalformedPacketError: It names none, or too many seconds.
        """
        seconds, _, inner = topic.removeprefix(DELAYED_PREFIX).partition(b"/")
        if not seconds.isdigit() or len(seconds) > _DIGITS_MAX or int(seconds) > self.seconds_max:
            reason = f"a delay of no seconds, or of more than {self.seconds_max}"
            raise MalformedPacketError("$delayed", reason, ReasonCode.TOPIC_NAME_INVALID)
        if not inner or inner.startswith(DELAYED_PREFIX):
            raise MalformedPacketError("$delayed", "a delay of no topic", ReasonCode.TOPIC_NAME_INVALID)
        return int(seconds), inner

    def split_kept(self, topic: bytes) -> tuple[int, bytes]:
        """Return the same of a topic that was checked when it was written down; of a plain one -1 and itself.

        The most that the settings allow may be less now: then it is that.
        """
        if not topic.startswith(DELAYED_PREFIX):
            return -1, topic
        seconds, _, inner = topic.removeprefix(DELAYED_PREFIX).partition(b"/")
        return min(int(seconds), self.seconds_max), inner

    def route(self, topic: bytes, seconds: int, now_ms: int) -> Route:
        """Return the route of messages that are to come to `topic` so many seconds from now."""
        if not seconds:
            return self._broker.route_topic(topic)
        due_ms, queue_id = self._broker.timer.admit(now_ms + seconds * SECOND_MS, now_ms)
        return self._broker.timer.route(queue_id, encode_properties([(WAITING_FOR, topic)]) + encode_due(due_ms))

    @staticmethod
    def mark(batch: PublishBatch) -> None:
        """Let what waits be retained when it comes, and not before."""
        for i in range(batch.count):
            route = batch.routes[batch.route_index[i]]
            if batch.flag[i] & FLAG_RETAIN and route is not None and route.topic == TIMER_TOPIC:
                batch.flag[i] = batch.flag[i] & ~FLAG_RETAIN | _FLAG_RETAIN_LATER
                batch.retained_count -= 1

    def _resolve(self, text: bytes, flag: int) -> Destination | None:
        end = text.find(b"\x02")
        topic = text[len(WAITING_FOR) + 1 : end]
        if flag & _FLAG_RETAIN_LATER:
            flag = flag & ~_FLAG_RETAIN_LATER | FLAG_RETAIN
        return Destination(self._broker.route_topic(topic), topic, text[end + 1 :], flag)
