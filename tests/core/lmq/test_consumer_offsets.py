"""Groups go on where they committed, also after a restart."""

from __future__ import annotations

from hypothesis import given, strategies as st

from core.lmq.consumer_offsets import ConsumerOffsets
from core.store.places import Places
from tests.support.stores import MemoryPlaces, MemoryTable

names = st.sampled_from([b"g1", b"g2", b"%LMQ%g"])
queues = st.sampled_from([b"%LMQ%a", b"orders/0", b"orders/1"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), names, queues, st.integers(0, 2**40)),
        st.tuples(st.just("forget"), names, queues),
        st.tuples(st.just("reopen")),
    ),
    max_size=40,
)


def test_group_that_never_committed_has_no_offset():
    assert ConsumerOffsets(MemoryTable(), MemoryPlaces()).get(b"g", b"%LMQ%q") is None


def test_commit_may_go_backwards():
    offsets = ConsumerOffsets(MemoryTable(), MemoryPlaces())
    offsets.commit(b"g", b"q/0", 9)
    offsets.commit(b"g", b"q/0", 3)
    assert offsets.get(b"g", b"q/0") == 3


@given(steps)
def test_offsets_are_what_was_committed_last_also_after_reopening(actions):
    table, places, model = MemoryTable(), MemoryPlaces(), {}
    offsets = ConsumerOffsets(table, places)
    for action, *arguments in actions:
        if action == "commit":
            group, queue, offset = arguments
            offsets.commit(group, queue, offset)
            model[group, queue] = offset
        elif action == "forget":
            offsets.forget(*arguments)
            model.pop(tuple(arguments), None)
        else:
            places.lose_owners()
            offsets = ConsumerOffsets(table, places)
        assert {(group, queue): offset for group, queue, offset in offsets.items()} == model
        assert places.used_count == len(model)
    for (group, queue), offset in model.items():
        assert offsets.get(group, queue) == offset


def test_groups_may_come_and_go_while_they_are_walked():
    offsets = ConsumerOffsets(MemoryTable(), MemoryPlaces())
    for number in range(4):
        offsets.commit(b"g%d" % number, b"q", number)
    walk = offsets.items()
    assert next(walk) == (b"g0", b"q", 0)
    offsets.forget(b"g0", b"q")
    offsets.forget(b"g2", b"q")
    offsets.commit(b"g3", b"q", 7)
    offsets.commit(b"new", b"q", 1)
    assert list(walk) == [(b"g1", b"q", 1), (b"g3", b"q", 7)]


def test_group_whose_offset_is_lost_to_damage_is_named_and_goes_on_at_the_oldest_message(tmp_path, caplog):
    table, path = MemoryTable(), tmp_path / "consumer_offsets"
    places = Places.open(path)
    offsets = ConsumerOffsets(table, places)
    for group in (b"GID_a", b"GID_b", b"GID_c"):
        for offset in (3_000_000_000, 3_000_000_032):
            offsets.commit(group, b"orders/0", offset)
    places.close()
    data = bytearray(path.read_bytes())
    data[16 + 16] ^= 1  # the newer word of the second
    data[16 + 32 : 16 + 48] = bytes(16)  # all of the third
    path.write_bytes(data)
    places = Places.open(path)
    offsets = ConsumerOffsets(table, places)
    assert "group=GID_c queue=orders/0" in caplog.text
    assert "GID_a" not in caplog.text
    assert places.damaged_count == 2
    assert offsets.get(b"GID_a", b"orders/0") == 3_000_000_032
    assert offsets.get(b"GID_b", b"orders/0") == 3_000_000_000
    assert offsets.get(b"GID_c", b"orders/0") == 0
    places.close()
