from __future__ import annotations

from types import SimpleNamespace

from core.message import PublishBatch
from core.queues.crossroads import Crossroads, Lead

NOW_MS = 1_000


class Routes:
    """Makes routes of names alone."""

    def __init__(self):
        self.made = 0

    def make(self, topic, queue_id, prefix, names):
        self.made += 1
        refs = [hash(name) for name in names]
        dispatch = DispatchNames(names, refs)
        return SimpleNamespace(topic=topic, queue_id=queue_id, prefix=prefix, dispatch=dispatch)


class DispatchNames:
    def __init__(self, names, refs):
        self.names, self.queue_refs, self.count = list(names), refs, len(names)


class ByProperties:
    """Leads to the light queue that a message's properties name."""

    def lead(self, route_properties, properties, flag, born_ms):
        assert route_properties == b"of the route"
        return Lead([properties] if properties else [])


class ByRecord:
    """Leads to the light queue that is called as what is said of the record."""

    def lead(self, route_properties, properties, flag, born_ms):
        return Lead([b"%s %d %d" % (properties, flag, born_ms)])


def batch_of(route, *properties):
    batch = PublishBatch(8)
    extra = b"".join(properties)
    batch.extra = memoryview(extra)
    pos = 0
    batch.routes = [route, None]
    for i, each in enumerate(properties):
        batch.extra_start[i], batch.extra_end[i] = pos, pos + len(each)
        batch.route_index[i] = 0
        pos += len(each)
    batch.count = len(properties)
    return batch


def test_message_goes_where_its_properties_lead_and_the_batch_is_as_it_was_afterwards():
    routes = Routes()
    crossroads = Crossroads(routes.make)
    route = routes.make(b"t", 0, b"of the route", [b"always", b"choice"])
    crossroads.add(hash(b"choice"), ByProperties())
    batch = batch_of(route, b"red", b"", b"red", b"always", b"blue")
    batch.route_index[4] = 1  # goes nowhere
    before = (list(batch.routes), list(batch.route_index[:5]))
    made = routes.made
    crossroads.divert(batch, NOW_MS)
    found = [batch.routes[index] for index in batch.route_index[:5]]
    assert [None if one is None else one.dispatch.names for one in found] == [
        [b"always", b"red"], [b"always"], [b"always", b"red"], [b"always"], None,
    ]  # fmt: skip
    assert found[0] is found[2]
    assert routes.made - made == 2  # one for each choice, not for each message
    crossroads.restore(batch)
    assert (list(batch.routes), list(batch.route_index[:5])) == before


def test_choice_is_told_the_publisher_the_flag_and_the_time_that_the_record_will_say():
    routes = Routes()
    crossroads = Crossroads(routes.make)
    crossroads.add(hash(b"choice"), ByRecord())
    batch = batch_of(routes.make(b"t", 0, b"of the route", [b"choice"]), b"red", b"blue")
    batch.origin = b"bob "
    batch.flag[0], batch.born_ms[1] = 5, 7
    crossroads.divert(batch, NOW_MS)
    found = [batch.routes[index].dispatch.names for index in batch.route_index[:2]]
    assert found == [[b"bob red 5 1000"], [b"bob blue 0 7"]]


def test_routes_without_a_choice_are_let_be():
    routes = Routes()
    crossroads = Crossroads(routes.make)
    batch = batch_of(routes.make(b"t", 0, b"of the route", [b"always"]), b"red")
    crossroads.divert(batch, NOW_MS)
    crossroads.add(hash(b"choice"), ByProperties())
    crossroads.divert(batch, NOW_MS)
    assert len(batch.routes) == 2
    crossroads.drop(hash(b"choice"))
    crossroads.drop(hash(b"choice"))
    assert crossroads.asked == {}
