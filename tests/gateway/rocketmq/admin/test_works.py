from __future__ import annotations

import pytest

from core.message import StoredBatch
from gateway.rocketmq.admin.works import (
    BODY_BYTES_MAX,
    ITEMS_A_STEP,
    STEPS_A_TURN,
    WORKS_MAX,
    Works,
    check_size,
    find_offset,
    read_store_ms,
    stepwise,
)
from gateway.rocketmq.errors import CommandRefusedError
from lmq.remoting.commands import Command, answer


def run(steps):
    """Do all steps at once; return what they come to."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def counting(request, count, seen):
    for _ in range(count):
        seen.append(1)
        yield
    return answer(request, 0)


def test_a_long_answer_takes_several_turns_and_comes_once(site, peer):
    works, seen = Works(site.broker), []
    request = Command(28, 5)
    works.begin(peer.handler, request, counting(request, 3 * STEPS_A_TURN, seen))
    site.broker.run_turn(site.now_ms)
    assert len(seen) == STEPS_A_TURN
    site.turn()
    for _ in range(5):
        site.turn()
    assert [response.opaque for response in peer.take()] == [5]
    assert len(seen) == 3 * STEPS_A_TURN


def test_a_connection_has_few_long_answers_under_way(site, peer):
    works = Works(site.broker)
    request = Command(28)
    for _ in range(WORKS_MAX):
        works.begin(peer.handler, request, counting(request, 1, []))
    with pytest.raises(CommandRefusedError) as caught:
        works.begin(peer.handler, request, counting(request, 1, []))
    assert caught.value.code == 2
    site.turn()
    works.begin(peer.handler, request, counting(request, 1, []))


def test_a_refusal_in_a_step_is_answered_and_frees_the_place(site, peer):
    def refusing():
        yield
        raise CommandRefusedError(17, "no such topic")

    works = Works(site.broker)
    for _ in range(2 * WORKS_MAX):
        works.begin(peer.handler, Command(202), refusing())
        site.turn()
    assert {response.code for response in peer.take()} == {17}


def test_nothing_goes_on_for_a_connection_that_is_gone(site, peer):
    works, seen = Works(site.broker), []
    works.begin(peer.handler, Command(28), counting(Command(28), 9, seen))
    works.forget(peer.transport.conn_id)
    site.turn()
    assert seen == []


def test_places_and_moments_are_found_also_where_messages_are_on_their_way(site, peer):
    peer.send(b"x")
    site.now_ms += 1_000
    peer.send(b"y")
    ref = site.broker.find_queue(b"T/0")

    def look(steps):
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value
            site.turn()

    assert look(read_store_ms(site.broker, StoredBatch(1), ref, 1)) == site.now_ms
    assert look(read_store_ms(site.broker, StoredBatch(1), ref, 2)) == 0
    assert look(find_offset(site.broker, ref, site.now_ms)) == 1


def test_steps_and_sizes_are_bounded():
    ends = [is_end for _, is_end in stepwise(range(2 * ITEMS_A_STEP))]
    assert [at for at, is_end in enumerate(ends) if is_end] == [ITEMS_A_STEP - 1, 2 * ITEMS_A_STEP - 1]
    assert check_size(b"x") == b"x"
    with pytest.raises(CommandRefusedError):
        check_size(bytes(BODY_BYTES_MAX + 1))
