from __future__ import annotations

from gateway.auth.backends.question import NO, NOT_MINE, Reply, Verdict
from gateway.auth.backends.reply_memory import ENTRY_BYTES, ReplyMemory
from gateway.settings.backends import BackendSettings

YES = Reply(Verdict.YES, ("a",))


def test_answers_are_known_until_their_time_is_over():
    memory = ReplyMemory(BackendSettings(cache_s=60, cache_refused_s=5))
    for digest, reply in ((b"yes", YES), (b"no", NO), (b"none", NOT_MINE)):
        memory.add(digest, reply, 1_000)
    assert [memory.find(digest, 5_999) for digest in (b"yes", b"no", b"none")] == [YES, NO, NOT_MINE]
    assert [memory.find(digest, 6_000) for digest in (b"yes", b"no", b"none")] == [YES, None, None]
    assert memory.find(b"yes", 61_000) is None
    assert len(memory) == 0


def test_answer_that_ends_is_not_known_for_longer():
    memory = ReplyMemory(BackendSettings(cache_s=60))
    memory.add(b"a", YES._replace(ends_at_ms=2_000), 1_000)
    assert memory.find(b"a", 1_999) is not None
    assert memory.find(b"a", 2_000) is None


def test_nothing_is_remembered_where_the_settings_say_so():
    memory = ReplyMemory(BackendSettings(cache_s=0, cache_refused_s=0))
    memory.add(b"a", YES, 0)
    memory.add(b"b", NO, 0)
    assert len(memory) == 0


def test_memory_is_bounded_and_the_oldest_goes_first():
    memory = ReplyMemory(BackendSettings(), bytes_max=10 * ENTRY_BYTES)
    for number in range(1_000):
        memory.add(b"%d" % number, NO, 0)
        memory.add(b"same", NO, 0)
    assert len(memory) == 10
    assert memory.find(b"same", 0) is NO
    assert memory.find(b"999", 0) is NO
    assert memory.find(b"1", 0) is None
