"""A run of sends: a batch to be stored, where its messages want to go, and how to answer each of them."""

from __future__ import annotations

from array import array

from core.message import PublishBatch
from gateway.rocketmq.codec import SendHeader
from lmq.remoting.frames import FRAMES_MAX

RUN_MAX = FRAMES_MAX  # sends in a run
ORIGIN_BYTES_MAX = 1024  # chosen: of what is told of a publisher, as properties; a longer one is not told
UNIQ_PREFIX_BYTES = 28  # address, process, hash and time of a key that we give, in hexadecimal digits
BUFFER_BYTES_KEPT = 1 << 22  # 4 MiB: what one run of huge headers made is not kept for ever

TIMED = 0x100  # in place of a delay level: a moment of the message's own
HALF = 0x200  # in place of a delay level: the end of the message's transaction
REFUSED_TIMED = 1  # a moment that is no number, or too far off
REFUSED_HALF = 2  # a message that claims to be a committed one of a transaction
REFUSED_TEXT = 3  # properties that are not UTF-8
REFUSED_PROPERTIES = 4  # properties over the limit
REFUSED_BODY = 5  # a body over the limit
REFUSED_DELAY = 6  # a delay level that is no number
REFUSED_HALF_LATER = 7  # a half message that is delayed, or for a moment
REFUSED_NO_GROUP = 8  # a half message of no producer group


class SendTarget:
    """Where sends of a run want to go; `refusal` is 0 or one of the REFUSED numbers, whatever the target."""

    def __init__(
        self,
        topic: bytes,
        queue_id: int,
        dispatch: bytes,
        space_topic: bytes,
        default_topic: bytes,
        default_queues: int,
        refusal: int,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id  # negative: any
        self.dispatch = dispatch  # names of light queues with commas between, as sent
        self.space_topic = space_topic  # LMQ_TOPIC, for messages to the parent topic
        self.default_topic = default_topic  # the topic whose settings a new topic takes over
        self.default_queues = default_queues
        self.refusal = refusal
        self.delay_level = 0  # 0: at once
        self.timer_queue = -1  # of the timer's, in which its messages wait
        self.reconsumes = 0  # of a message to a retry topic: how often it was given to its group
        self.reconsumes_max = -1  # how often at most, as its sender says; -1: it does not
        self.answer_queue = -1  # the queue to answer with, where the record lies in another


class UniqCounter:
    """What the keys end with that we give: counted over all runs of a door."""

    def __init__(self) -> None:
        self.value = 0  # of the key that was given last, 16 bits


class SendRun:
    """Sends ready to be routed: `batch`, the `targets` that its `route_index` points to, and how to answer each.

    `batch.tag` holds the opaque numbers; `batch.topics` and `batch.routes` are the front's to fill, one for each
    target. It is the event of a connection, and keeps what it holds until `release`.
    """

    def __init__(
        self, body_bytes_max: int, properties_bytes_max: int, uniq_counter: UniqCounter, cluster: bytes = b""
    ) -> None:
        self.pool: RunPool | None = None  # where it goes back to, None once it is there
        self.holders = 0  # users of the run besides the connection that took it
        self.uniq_counter = uniq_counter
        self.batch = PublishBatch(RUN_MAX)
        self.count = 0
        self.body_bytes_max = body_bytes_max
        self.properties_bytes_max = properties_bytes_max
        self.cluster: bytes | memoryview = (
            cluster  # an encoded property of requests: it names the topic of their replies
        )
        self.origin: bytes | memoryview = b""
        self.uniq_prefix: bytes | memoryview = b"0" * UNIQ_PREFIX_BYTES
        self.targets: list[SendTarget] = []
        self.by_key: dict[tuple[bytes, int, bytes, bytes, int, int, int, int], int] = {}
        self.header = SendHeader()
        self.header_type = array("i", bytes(4 * RUN_MAX))
        self.is_one_way = array("i", bytes(4 * RUN_MAX))
        self.uniq_start = array("i", bytes(4 * RUN_MAX))  # UNIQ_KEY's value in `extra`
        self.uniq_end = array("i", bytes(4 * RUN_MAX))
        self.extra: bytearray | memoryview = bytearray(1 << 16)
        self.extra_used = 0
        self.scratch: bytearray | memoryview = bytearray(1 << 12)
        # of the message being read
        self.kind = 0
        self.dispatch = b""
        self.space_topic = b""
        self.delay_level = 0
        self.is_request = False  # its reply goes to the client that it names
        self.refusal = 0
        self.is_half = False
        self.has_group = False
        # of the message before: most go where it went
        self.last_start = 0
        self.last_end = 0
        self.last_queue_id = 0
        self.last_index = -1

    def cut(self, count: int) -> None:
        """End the run after its first `count` sends."""
        self.count = self.batch.count = count

    def begin(
        self,
        buf: bytes | bytearray | memoryview,
        *,
        origin: bytes,
        born_host: bytes,
        uniq_prefix: bytes,
    ) -> None:
        """Forget the run before and begin one whose frames lie in `buf`.

        Args:
            buf: What the frames were cut from.
            origin: Encoded properties of the publisher, for messages that go beyond their own topic.
            born_host: The peer's address and port.
            uniq_prefix: The first 28 digits of a UNIQ_KEY that we give.
        """
        self.origin = origin if len(origin) <= ORIGIN_BYTES_MAX else b""
        self.uniq_prefix = uniq_prefix
        self.batch.born_host = born_host
        self.restart(buf)

    def restart(self, buf: bytes | bytearray | memoryview) -> None:
        """Begin anew, for the same peer, with frames that lie in `buf`."""
        self.batch.clear()
        self.batch.buf = buf
        if len(self.extra) > BUFFER_BYTES_KEPT:
            self.extra = bytearray(1 << 16)
            self.scratch = bytearray(1 << 12)
        self.count = 0
        self.targets.clear()
        self.by_key.clear()
        self.extra_used = 0
        self.last_index = -1

    def hold(self) -> None:
        """Keep it as it is until one more `release`."""
        self.holders += 1

    def release(self) -> None:
        """Give it back for another run, once each of its holders has released it."""
        if self.holders > 0:
            self.holders -= 1
            return
        pool, self.pool = self.pool, None
        if pool is not None:
            pool.give_back(self)


class RunPool:
    """Runs of a door that hold nothing: one, as mostly each run is done before the next comes."""

    def __init__(self, body_bytes_max: int, properties_bytes_max: int, cluster: bytes = b"") -> None:
        self._cluster = cluster
        self.body_bytes_max = body_bytes_max  # of the runs that are begun from now on
        self._properties_bytes_max = properties_bytes_max
        self._uniq_counter = UniqCounter()
        self._free: SendRun | None = None

    def show(self) -> SendRun:
        """Return the run that `take` would return; it stays here."""
        run = self._free
        if run is None:
            run = SendRun(self.body_bytes_max, self._properties_bytes_max, self._uniq_counter, self._cluster)
            self._free = run
        run.body_bytes_max = self.body_bytes_max
        return run

    def take(self) -> SendRun:
        """Return a run to be filled."""
        run = self.show()
        run.pool = self
        self._free = None
        return run

    def give_back(self, run: SendRun) -> None:
        """Take a run back that nobody needs any more."""
        self._free = run
