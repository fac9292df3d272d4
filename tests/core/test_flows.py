from __future__ import annotations

import pytest

from core.flows import UNSEEN_MAX, Flow, Flows, Outflow
from core.message import DispatchSet, PublishBatch, RefRoom, Route


def route_to(*refs: int) -> Route:
    return Route(b"T", 0, 0, b"", DispatchSet([b"q%d" % ref for ref in refs], list(refs), b"", RefRoom()))


def batch_of(routes: list[Route | None], *indexes: int) -> PublishBatch:
    batch = PublishBatch(len(indexes))
    batch.count = len(indexes)
    batch.routes.extend(routes)
    for i, index in enumerate(indexes):
        batch.route_index[i] = index
    return batch


def test_a_batch_of_one_route_is_counted_with_its_copies():
    flows, flow = Flows(), Flow()
    flows.add_batch(batch_of([route_to(1, 2, 3)], 0, 0), [flow])
    assert (flow.published_in, flow.published_out) == (2, 6)
    flows.add_batch(batch_of([None], 0, 0, 0), [flow])
    assert (flow.published_in, flow.published_out) == (5, 6)


def test_messages_of_several_flows_are_counted_where_they_belong():
    flows, first, second = Flows(), Flow(), Flow()
    batch = batch_of([route_to(1), route_to(1, 2), None, route_to(5)], 0, 1, 1, 3, 2)
    flows.add_batch(batch, [first, second, second, None])
    assert (first.published_in, first.published_out) == (1, 1)
    assert (second.published_in, second.published_out) == (3, 4)


def test_of_the_topic_space_only_what_has_a_route_is_counted():
    flows = Flows()
    flows.add_topics(batch_of([route_to(1), None, route_to()], 0, 1, 2, 0))
    flows.add_topics(batch_of([route_to(1, 2)], 0, 0))
    flows.add_topics(batch_of([None], 0))
    assert (flows.topics.published_in, flows.topics.published_out) == (5, 6)


def test_what_is_counted_is_counted_for_the_whole_too():
    flows, whole = Flows(), Flow()
    for _ in range(2):
        flows.add_batch(batch_of([route_to(1, 2)], 0), [Flow(whole)])
    assert (whole.published_in, whole.published_out) == (2, 4)


def test_rates_are_those_of_the_time_between_two_looks():
    flows, whole = Flows(), Flow()
    flow, still = Flow(whole), Flow(whole)
    flows.add(flow, 10, 30)
    flows.look(5.0)
    assert (flow.rate_in, flow.rate_out, whole.rate_in) == (2.0, 6.0, 2.0)
    flows.add(flow, 1, 0)
    flows.look(0.5)
    assert (flow.rate_in, flow.rate_out) == (2.0, 0.0)
    flows.look(5.0)
    assert (flow.rate_in, whole.rate_out, still.rate_in) == (0.0, 0.0, 0.0)
    flows.add(flow, 5, 5)
    flows.look(5.0)
    assert (flow.rate_in, flow.rate_out) == (1.0, 1.0)


def test_it_is_told_when_rates_may_be_others():
    flows, flow = Flows(), Flow()
    flows.look(1.0)
    assert flows.changes == 0
    flows.add(flow, 1, 1)
    flows.look(1.0)  # it moves
    flows.look(1.0)  # it stands
    assert flows.changes == 2
    flows.look(1.0)
    assert flows.changes == 2


def test_where_nobody_looks_at_rates_only_some_flows_are_kept_for_that():
    flows, found = Flows(), [Flow() for _ in range(UNSEEN_MAX + 1)]
    for flow in found:
        flows.add(flow, 1, 1)
    assert [flow.is_moving for flow in found] == [True] * UNSEEN_MAX + [False]
    flows.look(1.0)
    for flow in found:
        flows.add(flow, 3, 3)
    assert all(flow.is_moving for flow in found)
    flows.look(1.0)
    assert found[0].rate_in == 3.0
    assert found[-1].published_in == 4


def test_what_clients_take_is_counted_by_how_they_took_it():
    flows = Flows()
    outflow = Outflow(flows)
    outflow.add_delivered(10, False)
    outflow.add_delivered(3, True)
    outflow.add_got(False, True)
    outflow.add_got(True, False)
    outflow.add_got(True, False)
    outflow.add_got_nothing()
    outflow.redelivered += 4
    outflow.add_acked(7)
    assert outflow.counts() == (10, 3, 1, 2, 1, 5, 7)
    assert outflow.rates == (0.0,) * 7
    flows.look(2.0)
    assert outflow.rates == (5.0, 1.5, 0.5, 1.0, 0.5, 2.5, 3.5)


@pytest.mark.parametrize(
    "take",
    [
        lambda outflow: outflow.add_delivered(1, True),
        lambda outflow: outflow.add_got(False, False),
        lambda outflow: outflow.add_got_nothing(),
        lambda outflow: outflow.add_acked(1),
    ],
)
def test_whatever_is_taken_changes_what_lists_tell_until_it_stands(take):
    flows = Flows()
    outflow = Outflow(flows)
    for _ in range(2):
        take(outflow)
        take(outflow)
        before = flows.changes
        assert outflow.has_moved()
        flows.look(1.0)
        assert (sum(outflow.rates), outflow.has_moved()) == (2.0, False)
        flows.look(1.0)
        assert (sum(outflow.rates), flows.changes - before) == (0.0, 2)
        flows.look(1.0)
        assert flows.changes - before == 2


def test_where_nobody_looks_only_some_of_what_is_taken_is_kept_for_that():
    flows = Flows()
    found = [Outflow(flows) for _ in range(UNSEEN_MAX + 1)]
    for outflow in found:
        outflow.add_acked(1)
    assert [outflow.is_moving for outflow in found] == [True] * UNSEEN_MAX + [False]
    flows.look(1.0)
    found[-1].add_acked(1)
    flows.look(1.0)
    assert found[-1].rates[-1] == 2.0
