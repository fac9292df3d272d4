"""Messages as the SDK gives and takes them."""

from __future__ import annotations

from dataclasses import dataclass, field

from lmq.queues import MessageQueue
from lmq.remoting.message_codec import Record

GATEWAYS_PREFIX = "LMQ_"  # of names of properties that the gateway adds
NO_USERS = frozenset(
    (
        "INNER_MULTI_DISPATCH",
        "INNER_MULTI_QUEUE_OFFSET",
        "__CRC32#",
        "WAIT",
        "DELAY",
        "REAL_TOPIC",
        "REAL_QID",
        "RETRY_TOPIC",
        "POP_CK",
        "1ST_POP_TIME",
        "TRAN_MSG",
        "TIMER_DELAY_SEC",
        "TIMER_DELAY_MS",
        "TIMER_DELIVER_MS",
        "TIMER_OUT_MS",
        "TIMER_DEL_UNIQKEY",
        "PGROUP",
        "__transactionId__",
        "CHECK_IMMUNITY_TIME_IN_SECONDS",
        "MIN_OFFSET",
        "MAX_OFFSET",
        "MSG_REGION",
        "TRACE_ON",
        "CLUSTER",
        # told by attributes of their own
        "CONTENT_TYPE",
        "TAGS",
        "KEYS",
        "UNIQ_KEY",
    )
)


@dataclass(slots=True, frozen=True)
class Message:
    """A message that was read from a queue.

    `topic` is the topic that it is stored on; a message that came by MQTT or AMQP has its topic in the one topic
    space as `mqtt_topic`.
    """

    topic: str
    body: bytes
    properties: dict[str, str] = field(repr=False)
    queue: str
    queue_id: int
    queue_offset: int  # in the queue that was read
    physical_offset: int
    born_ms: int
    store_ms: int
    born_host: bytes = field(repr=False)  # address (4 or 16 bytes) and port (4 bytes)
    flag: int = 0
    reconsume_times: int = 0
    broker_name: str = ""
    receipt: str = field(default="", repr=False)  # of a message received by POP: acknowledges it

    @property
    def message_queue(self) -> MessageQueue:
        """The queue that it was read from."""
        return MessageQueue(self.queue, self.broker_name, self.queue_id)

    @property
    def tags(self) -> str:
        """What a tag filter looks at."""
        return self.properties.get("TAGS", "")

    @property
    def keys(self) -> list[str]:
        """The keys that the producer gave."""
        return self.properties.get("KEYS", "").split()

    @property
    def key(self) -> str:
        """The identifier that the producer's client made (UNIQ_KEY); a message sent again has the same."""
        return self.properties.get("UNIQ_KEY", "")

    @property
    def protocol(self) -> str:
        """The door that the message came in by: `mqtt`, `amqp` or `rocketmq`."""
        return self.properties.get("LMQ_PROTOCOL", "rocketmq")

    @property
    def client(self) -> str:
        """The publisher's client identifier, where it is known."""
        return self.properties.get("LMQ_CLIENT", "")

    @property
    def user(self) -> str:
        """The publisher's user name, where there was one."""
        return self.properties.get("LMQ_USER", "")

    @property
    def mqtt_topic(self) -> str:
        """The topic in the topic space that MQTT and AMQP share, empty where the message was not published there."""
        return self.properties.get("LMQ_TOPIC", "")

    @property
    def content_type(self) -> str:
        """The MIME type of the body, where the publisher said it."""
        return self.properties.get("CONTENT_TYPE", "")

    @property
    def user_properties(self) -> dict[str, str]:
        """The properties without those that the gateway or a broker adds, and those told by attributes of their own."""
        return {
            name: value
            for name, value in self.properties.items()
            if name not in NO_USERS and not name.startswith(GATEWAYS_PREFIX)
        }


def message_of(record: Record, queue: MessageQueue, queue_offset: int) -> Message:
    """Return the message of a record that was read from a queue at `queue_offset`."""
    return Message(
        topic=record.topic.decode(errors="replace"),
        body=record.body,
        properties={
            name.decode(errors="replace"): value.decode(errors="replace") for name, value in record.properties.items()
        },
        queue=queue.topic,
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        queue_offset=queue_offset,
        physical_offset=record.physical_offset,
        born_ms=record.born_ms,
        store_ms=record.store_ms,
        born_host=record.born_host,
        flag=record.flag,
        reconsume_times=record.reconsume_times,
    )


@dataclass(slots=True, frozen=True)
class SendResult:
    """Where a message was stored."""

    msg_id: str  # the broker's address and the physical offset, as RocketMQ's tools take it
    key: str  # UNIQ_KEY
    queue_id: int
    queue_offset: int
    is_flushed: bool = True  # False: stored, but the broker does not vouch for the disk or its replica yet
    recall_handle: str = ""  # what `Producer.recall` takes, of a message that waits for its moment
    broker_name: str = ""


@dataclass(slots=True, frozen=True)
class PullResult:
    """What a pull gave, and where the queue stands."""

    messages: list[Message]
    next_offset: int  # where to pull next
    min_offset: int
    max_offset: int
    is_moved: bool = False  # the offset that was asked for is not kept any more, or was never given
