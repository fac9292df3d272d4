"""Names of what was deleted, until they can be had again."""

from __future__ import annotations

from pamqp.commands import Basic, Exchange, Queue

from gateway.amqp.taken_names import TakenNames, name_of

KEY = ("q", "orders")


def test_name_is_taken_until_nothing_is_left_and_that_is_durable():
    kept, told = [], []
    names = TakenNames(kept.append)
    names.take(KEY, b"light")
    assert KEY in names
    assert names.light_name(KEY) == b"light"
    assert not names.tell(KEY, lambda: told.append(1))  # it waits for something else than the disk
    names.give_back(KEY, is_durable=True)
    assert KEY in names
    for _ in range(2):
        assert names.tell(KEY, told.clear)  # the same once more
    assert names.tell(KEY, lambda: told.append(KEY in names))
    told.append("not yet")
    kept.pop()(None)
    assert told in ([], [False])  # each was told once, in any order
    assert KEY not in names
    assert names.light_name(KEY) == b""


def test_name_of_what_leaves_nothing_on_disk_can_be_had_at_once():
    kept = []
    names = TakenNames(kept.append)
    names.take(KEY)
    names.give_back(KEY, is_durable=False)
    assert (KEY in names, kept) == (False, [])


def test_name_can_be_had_again_where_the_disk_has_failed():
    kept = []
    names = TakenNames(kept.append)
    names.take(KEY)
    names.give_back(KEY, is_durable=True)
    kept.pop()(OSError())
    assert KEY not in names


def test_declarations_alone_have_names_to_wait_for():
    found = [name_of(one) for one in (Queue.Declare(queue="a"), Exchange.Declare(exchange="b"), Basic.Get(queue="c"))]
    assert found == [("q", "a"), ("x", "b"), None]
