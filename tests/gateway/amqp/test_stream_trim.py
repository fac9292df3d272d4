from __future__ import annotations

from core.queues.terms import QueueTerms
from gateway.amqp.stream_trim import StreamTrim


class Stream:
    queue_ref = 7

    def __init__(self):
        self.next_offset = 5
        self.kept = []

    def count_on(self):
        return True

    def keep_bytes(self, most):
        self.kept.append(most)

    def skip_to(self, offset):
        self.next_offset = offset


class Finder:
    """A broker whose offsets are seconds."""

    def __init__(self):
        self.asked = []

    def find_offset(self, queue_ref, at_ms, then):
        self.asked.append(at_ms)
        then(at_ms // 1_000)


def test_age_is_looked_at_once_a_second_and_never_goes_back():
    broker, stream = Finder(), Stream()
    trim, terms = StreamTrim(broker), QueueTerms(age_max_ms=10_000)
    for now_ms in (9_000, 12_000, 12_900, 13_000, 20_000):
        trim.run(stream, terms, now_ms)
    assert broker.asked == [2_000, 3_000, 10_000]
    assert (stream.next_offset, stream.kept) == (10, [])


def test_bytes_are_kept_as_the_terms_say():
    stream = Stream()
    StreamTrim(Finder()).run(stream, QueueTerms(bytes_max=3), 0)
    assert stream.kept == [3]
