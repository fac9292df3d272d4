from __future__ import annotations

from core.queues.diversion import Diversion, Members
from tests.core.queues.test_levels import led, make_batch, make_route


def test_members_of_a_set_are_found_with_their_names_until_they_change():
    among = {2}
    members = Members(among)
    route = make_batch(b"").routes[0]
    assert members.find(route) == {2: b"b"}
    among.add(1)
    assert members.find(route) == {2: b"b"}
    members.clear()
    assert members.find(route) == {1: b"a", 2: b"b"}
    assert members.find(None) == {}


def test_messages_with_the_same_key_share_a_route_and_all_get_theirs_back():
    batch = make_batch(b"", b"", b"")
    before = (list(batch.routes), list(batch.route_index[: batch.count]))
    other = make_route(b"T", 0, b"", [b"b"])
    diversion = Diversion()
    diversion.begin(batch)
    for i in (0, 2):
        diversion.move(batch, i, (7,), lambda: other)
    assert led(batch) == [[b"b"], [b"a", b"b"], [b"b"]]
    made = len(batch.routes) - len(before[0])
    assert made == 1
    diversion.restore(batch)
    diversion.restore(batch)  # harmless
    assert (list(batch.routes), list(batch.route_index[: batch.count])) == before
