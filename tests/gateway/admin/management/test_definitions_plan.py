from __future__ import annotations

import pytest

from gateway.admin.management.definitions_export import tell_definitions
from gateway.admin.management.definitions_plan import DefinitionsError, Plan
from gateway.amqp.host_profile import HostProfile

QUEUE = {"name": "q", "vhost": "v", "durable": True, "auto_delete": False, "arguments": {}}
EXCHANGE = {"name": "x", "vhost": "v", "type": "topic", "durable": True, "arguments": {}}
BINDING = {"source": "x", "vhost": "v", "destination": "q", "destination_type": "queue", "routing_key": "a.#"}
RULES = {"pattern": "q", "apply-to": "queues", "definition": {"max-length": 7}, "priority": 2}
POLICY = {"name": "p", "vhost": "v", **RULES}
FILE = {
    "vhosts": [{"name": "v"}],
    "exchanges": [EXCHANGE],
    "queues": [QUEUE],
    "bindings": [{**BINDING, "arguments": {}}],
}


def run(world, sections, only=None):
    plan = Plan(world.amqp.vhosts, only)
    for _ in plan.check(sections):
        pass
    for _ in plan.carry_out():
        world.turn()
    return plan


def told(world):
    return [one for one in tell_definitions(world.amqp.vhosts) if one is not None]


def test_file_is_imported_twice_as_once(world):
    for _ in range(2):
        plan = run(world, FILE)
        assert plan.counts == {"vhosts": 1, "exchanges": 1, "queues": 1, "bindings": 1}
        assert plan.left_out == []
    assert {section: item for section, item in told(world) if section != "vhosts"} == {
        "queues": {**QUEUE, "type": "classic"},
        "exchanges": {**EXCHANGE, "auto_delete": False, "internal": False},
        "bindings": {**BINDING, "arguments": {}},
    }
    world.close()
    world.open()
    peer = world.client(vhost="v")
    peer.publish(b"x", exchange="x", key="a.b")
    assert peer.consume("q").bodies() == [b"x"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"vhosts": [{"name": ""}]}, 'vhost {"name": ""}: name: must not be empty'),
        ({"vhosts": ["v"]}, "vhost: must be an object of names and values"),
        ({"queues": [{**QUEUE, "vhost": "none"}]}, "queue 'q': no vhost 'none'"),
        ({"queues": [{**QUEUE, "name": 7}]}, "name: must be a text"),
        ({"queues": [{"name": "q"}]}, "vhost: is missing"),
        (
            {"bindings": [{**BINDING, "destination_type": "odd"}]},
            "destination_type: must be 'queue' or 'exchange'",
        ),
        ({"exchanges": [{**EXCHANGE, "name": "amq.fanout"}]}, "is there, and differs: inequivalent arg 'type'"),
    ],
)
def test_nothing_is_changed_where_something_is_wrong(world, wrong, said):
    before = told(world)
    with pytest.raises(DefinitionsError) as raised:
        run(world, {**FILE, **{name: [*FILE[name], *items] for name, items in wrong.items()}})
    assert said in str(raised.value)
    assert told(world) == before


@pytest.mark.parametrize(
    ("name", "item", "reason"),
    [
        ("queues", {"arguments": {"x-max-length": 5}}, "inequivalent arg 'x-max-length'"),
        ("queues", {"auto_delete": True}, "inequivalent arg 'auto_delete'"),
        ("exchanges", {"type": "fanout"}, "inequivalent arg 'type'"),
        ("exchanges", {"arguments": {"alternate-exchange": "y"}}, "inequivalent arg 'alternate-exchange'"),
    ],
)
def test_what_is_there_and_differs_is_told_and_nothing_changed(world, name, item, reason):
    run(world, FILE)
    other = {**FILE, "vhosts": [{"name": "w"}], name: [{**FILE[name][0], **item}]}
    with pytest.raises(DefinitionsError, match=reason):
        run(world, other)
    assert world.amqp.vhosts.find("w") is None


@pytest.mark.parametrize(
    ("name", "item", "said"),
    [
        ("users", {"name": "bob", "password_hash": "x"}, "user 'bob': a file of one virtual host has none"),
        ("permissions", {"user": "bob", "vhost": "v"}, "permissions of user 'bob' in vhost 'v': a file of one"),
        (
            "policies",
            {**POLICY, "definition": {"federation-upstream-set": "all"}},
            """policy 'p' in vhost 'v': [{<<"federation-upstream-set">>,<<"all">>}] are not recognised""",
        ),
        (
            "parameters",
            {"component": "operator_policy", "name": "o", "vhost": "v", "value": {"pattern": "(", "definition": {}}},
            "operator policy 'o' in vhost 'v': pattern should be regular expression but is invalid",
        ),
        (
            "policies",
            {**POLICY, "pattern": r"(?<!\.dlq)$"},
            "policy 'p' in vhost 'v': pattern should be regular expression but is invalid: invalid perl operator: (?<!",
        ),
        (
            "global_parameters",
            {"name": "cluster_name", "value": "x"},
            "global parameter 'cluster_name': it has no meaning",
        ),
        (
            "parameters",
            {"component": "shovel", "name": "s", "vhost": "v"},
            "parameter 's' of shovel in vhost 'v': it has no",
        ),
        (
            "exchanges",
            {**EXCHANGE, "name": "y", "type": "x-odd"},
            "exchange 'y' in vhost 'v': there is no type 'x-odd' here",
        ),
        ("queues", {**QUEUE, "name": "r", "arguments": {"x-max-priority": 300}}, "queue 'r' in vhost 'v': invalid arg"),
        ("bindings", {**BINDING, "source": "none"}, "to queue 'q' in vhost 'v': one of its ends is not there"),
        ("bindings", {**BINDING, "source": ""}, "operation not permitted on the default exchange"),
        (
            "vhosts",
            {"name": "v", "default_queue_type": "odd"},
            "default queue type 'odd' of vhost 'v': there is none of that name here",
        ),
        (
            "vhosts",
            {"name": "v", "metadata": {"protected_from_deletion": True}},
            "protection from deletion of vhost 'v': there is none here",
        ),
        (
            "parameters",
            {"component": "vhost-limits", "name": "l", "vhost": "v", "value": {"odd": 1}},
            "limit 'odd' of vhost",
        ),
    ],
)
def test_what_has_no_home_here_is_listed(world, name, item, said):
    plan = run(world, {**FILE, name: [*FILE.get(name, ()), item]})
    assert len(plan.left_out) == 1
    assert said in plan.left_out[0]
    assert world.amqp.vhosts.find("v").find("q") is not None


def test_virtual_hosts_keep_what_the_file_does_not_say_and_get_their_limits(world):
    world.amqp.vhosts.make("v", HostProfile("as before", ("a",)))
    metadata = {"description": "other", "tags": ["b", "c"]}
    limits = {
        "component": "vhost-limits",
        "name": "limits",
        "vhost": "w",
        "value": {"max-queues": 3, "max-connections": 4},
    }
    run(world, {"vhosts": [{"name": "v"}, {"name": "w", "metadata": metadata}], "parameters": [limits]})
    assert world.amqp.vhosts.find("v").profile == ("as before", ("a",), -1, -1, "")
    assert world.amqp.vhosts.find("w").profile == ("other", ("b", "c"), 4, 3, "")


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (True, "must be a whole number"),
        (False, "must be a whole number"),
        ("7", "must be a whole number"),
        (7.5, "must be a whole number"),
        (None, "must be a whole number"),
        pytest.param(10**400, "must be at most 9007199254740991, or below 0 for any number", id="huge"),
    ],
)
def test_limit_that_is_no_number_is_left_out_and_told(world, value, fault):
    told = {"max-queues": value, "max-connections": 4, "odd": 1}
    limits = {"component": "vhost-limits", "name": "limits", "vhost": "v", "value": told}
    for said in ({"vhosts": [{"name": "v"}], "parameters": [limits]}, {"vhosts": [{"name": "v", "limits": told}]}):
        plan = run(world, said)
        assert plan.left_out == [
            f"limit 'max-queues' of vhost 'v': {fault}",
            "limit 'odd' of vhost 'v': there is none of that name here",
        ]
        assert world.amqp.vhosts.find("v").profile.limits == {"max-connections": 4}


def test_lists_of_pairs_that_rabbitmqctl_writes_are_read_as_objects(world):
    value = {"pattern": ".*", "apply-to": "queues", "priority": 0, "definition": [["expires", 5000], ["max-length", 5]]}
    limits = {"component": "vhost-limits", "name": "limits", "vhost": "v", "value": [["max-queues", 7]]}
    operators = {"component": "operator_policy", "name": "o", "vhost": "v", "value": value}
    vhost = {"name": "v", "limits": [["max-connections", 50]], "metadata": {"description": "", "tags": ""}}
    run(world, {"vhosts": [vhost], "parameters": [operators, limits]})
    assert world.amqp.vhosts.find("v").profile.limits == {"max-connections": 50, "max-queues": 7}
    assert [policy.definition for policy in world.amqp.vhosts.policies] == [{"expires": 5000, "max-length": 5}]


def test_type_of_a_queue_may_stand_beside_its_arguments(world):
    run(world, {**FILE, "queues": [{**QUEUE, "type": "quorum"}]})
    assert world.amqp.vhosts.find("v").find("q").arguments["x-queue-type"].text == "quorum"
    run(world, {**FILE, "queues": [{**QUEUE, "type": "quorum", "arguments": {"x-queue-type": "quorum"}}]})


def test_arguments_that_are_not_kept_are_told_each_time(world):
    own = {"rate": 1.5, "team": "blue", "steps": [1, 2], "x-max-length": 3}
    headers = {"name": "h", "vhost": "v", "type": "headers", "durable": True, "arguments": {}}
    file = {
        **FILE,
        "exchanges": [{**EXCHANGE, "arguments": {"alternate-exchange": "h", "note": "mine"}}, headers],
        "queues": [{**QUEUE, "arguments": own}],
        "bindings": [{**BINDING, "arguments": {"since": 7}}, {**BINDING, "source": "h", "arguments": {"kind": "a"}}],
    }
    for _ in range(2):
        assert run(world, file).left_out == [
            "argument 'note' of exchange 'x' in vhost 'v': it has no meaning here",
            "argument 'steps' of queue 'q' in vhost 'v': it has no meaning here",
        ]
    queues = [item for section, item in told(world) if section == "queues"]
    assert queues[0]["arguments"] == {"rate": 1.5, "team": "blue", "x-max-length": 3}


def test_bindings_that_differ_by_their_arguments_are_imported_and_told_again(world):
    of_all_sorts = {"since": 7, "steps": [1, "two", None], "by": {"team": "blue", "rate": 1.5}, "x-match": "any"}
    bindings = [{**BINDING, "arguments": arguments} for arguments in ({}, {"since": 7}, {"since": "7"}, of_all_sorts)]
    for _ in range(2):
        assert run(world, {**FILE, "bindings": bindings}).left_out == []
        assert [item for section, item in told(world) if section == "bindings"] == bindings


def test_file_of_one_virtual_host_goes_into_the_one_that_is_named(world):
    items = {
        name: [{key: value for key, value in item.items() if key != "vhost"} for item in FILE[name]] for name in FILE
    }
    plan = run(world, items, "/")
    assert plan.left_out == ["vhost 'v': the file is imported into vhost '/'"]
    assert world.amqp.vhost.find("q") is not None
    assert [vhost.name for vhost in world.amqp.vhosts] == ["/"]


def test_nothing_goes_into_one_that_is_being_deleted(world):
    vhost = world.amqp.vhosts.make("v")
    for i in range(300):
        vhost.add(f"q{i}", durable=False, auto_delete=False, owner=None, arguments={})
    world.amqp.vhosts.delete(vhost, world.now_ms)
    with pytest.raises(DefinitionsError, match="vhost 'v' is being deleted"):
        run(world, FILE)


def test_policies_are_imported_with_those_of_operators_and_told_again(world):
    value = {**RULES, "definition": {"max-length": 3}}
    operators = {"component": "operator_policy", "name": "o", "vhost": "v", "value": value}
    run(world, FILE)
    plan = run(world, {"policies": [POLICY], "parameters": [operators]})
    assert (plan.counts, plan.left_out) == ({"policies": 1, "parameters": 1}, [])
    world.turn()
    assert world.amqp.vhosts.find("v").find("q").terms.length_max == 3
    assert [item for section, item in told(world) if section in {"policies", "parameters"}] == [operators, POLICY]
