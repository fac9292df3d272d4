from __future__ import annotations

import json

import pytest

from gateway.commands.client import AdminClient
from tests.support.commands import call_lmq, check_told

pytestmark = pytest.mark.slow


@pytest.fixture
def lmq(running):
    admin = f"127.0.0.1:{running.port('admin')}"
    return lambda *arguments: call_lmq(*arguments, "--admin", admin)


@pytest.fixture(scope="module")
def client(running):
    """Ask a gateway with exchanges in two virtual hosts that are bound to each other and to queues."""
    client = AdminClient(f"127.0.0.1:{running.port('admin')}")
    for vhost in ("shown-1", "shown-2"):
        client.send("PUT", f"/api/vhosts/{vhost}", {})
        client.send("PUT", f"/api/exchanges/{vhost}/twice", {"type": "fanout"})
    arguments = {"alternate-exchange": "amq.fanout"}
    client.send("PUT", "/api/exchanges/shown-1/entry", {"type": "topic", "arguments": arguments})
    client.send("PUT", "/api/exchanges/shown-1/behind", {"type": "direct"})
    client.send("PUT", "/api/queues/shown-1/paint", {"durable": True})
    for key in ("paint.#", "wall.*", "wall.*"):
        said = {"routing_key": key, "arguments": {}}
        client.send("POST", "/api/bindings/shown-1/e/entry/q/paint", said)
    client.send("POST", "/api/bindings/shown-1/e/entry/e/behind", {"routing_key": "on", "arguments": {}})
    yield client
    for vhost in ("shown-1", "shown-2"):
        client.send("DELETE", f"/api/vhosts/{vhost}")


def facts_of(told):
    """Return the facts that were printed, up to the first empty line."""
    return dict(line.split("  ", 1) for line in told.partition("\n\n")[0].splitlines())


@pytest.mark.usefixtures("client")
def test_an_exchange_is_shown_with_its_bindings(lmq):
    told = lmq("exchanges", "show", "entry").stdout  # the only virtual host that has it needs not be said
    facts = {name: value.strip() for name, value in facts_of(told).items()}
    assert facts["name"] == "entry"
    assert (facts["vhost"], facts["type"], facts["alternate_exchange"]) == ("shown-1", "topic", "amq.fanout")
    assert (facts["messages in"], facts["in/s"]) == ("0", "0.0")
    assert "bindings from it: 3\n" in told
    assert "bindings to it: 0\n" in told
    rows = [line.split() for line in told.splitlines()]
    assert ["paint", "queue", "paint.#", "-"] in rows
    assert ["behind", "exchange", "on", "-"] in rows
    behind = lmq("exchanges", "show", "behind", "--vhost", "shown-1").stdout
    assert "bindings to it: 1\n" in behind
    assert ["entry", "on", "-"] in [line.split() for line in behind.splitlines()]
    found = json.loads(lmq("exchanges", "show", "entry", "--limit", "2", "--json").stdout)
    assert (found["name"], len(found["bindings_from"]), found["bindings_from_count"]) == ("entry", 2, 3)
    assert (found["bindings_to"], found["bindings_to_count"]) == ([], 0)
    assert "bindings from it: 3, the first 2 are\n" in lmq("exchanges", "show", "entry", "--limit", "2").stdout


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("name", ["(default)", "amq.default", ""])
def test_the_exchange_without_a_name_is_shown(lmq, name):
    told = lmq("exchanges", "show", name, "--vhost", "shown-1").stdout
    assert facts_of(told)["name"].strip() == "(default)"
    assert ["paint", "queue", "paint", "-"] in [line.split() for line in told.splitlines()]
    assert lmq("exchanges", "show", name).exit_code == 0


@pytest.mark.usefixtures("client")
def test_an_exchange_that_is_not_there_or_in_several_places_is_told(lmq):
    check_told(lmq("exchanges", "show", "ent"), "^lmq: no exchange is called 'ent'$", code=4)
    check_told(lmq("exchanges", "show", "ent", "--vhost", "/"), "^lmq: no exchange 'ent' in vhost '/'$", code=4)
    check_told(lmq("exchanges", "show", "entry", "--vhost", "none"), "^lmq: no vhost 'none'$", code=4)
    several = "^lmq: several exchanges are called 'twice': add --vhost \\(shown-1, shown-2\\)$"
    check_told(lmq("exchanges", "show", "twice"), several, code=2)
    assert json.loads(lmq("exchanges", "show", "amq.topic", "--json").stdout)["vhost"] == "/"


def test_one_binding_is_shown_by_its_two_ends_and_its_key(lmq, client):
    place = ("--vhost", "shown-1")
    told = lmq("bindings", "show", "entry", "paint", "wall.*", *place).stdout
    assert {name: value.strip() for name, value in facts_of(told).items()}["routing_key"] == "wall.*"
    key = json.loads(lmq("bindings", "show", "entry", "paint", "paint.#", "--json", *place).stdout)["properties_key"]
    assert lmq("bindings", "show", "entry", "paint", key, *place).exit_code == 0
    on = json.loads(lmq("bindings", "show", "entry", "behind", "--type", "exchange", "--json", *place).stdout)
    assert (on["destination"], on["routing_key"]) == ("behind", "on")
    assert lmq("bindings", "show", "(default)", "paint", *place).exit_code == 0
    several = r"^lmq: several bindings lead from 'entry' to queue 'paint': add the key of one \((paint\.#, )?wall\.\*"
    check_told(lmq("bindings", "show", "entry", "paint", *place), several, code=2)
    none = "^lmq: no binding leads from 'entry' to queue 'paint' with key 'x'$"
    check_told(lmq("bindings", "show", "entry", "paint", "x", *place), none, code=4)
    check_told(lmq("bindings", "show", "entry", "none", *place), "no queue 'none' in vhost 'shown-1'", code=4)
    check_told(lmq("bindings", "show", "none", "paint", *place), "no exchange 'none' in vhost 'shown-1'", code=4)


def test_bindings_that_only_arguments_tell_apart_are_shown_by_their_properties_key(lmq, client):
    for colour in ("red", "blue"):
        said = {"routing_key": "", "arguments": {"x-match": "all", "colour": colour}}
        client.send("POST", "/api/bindings/%2F/e/amq.headers/e/amq.direct", said)
    between = ("bindings", "show", "amq.headers", "amq.direct", "--type", "exchange")
    several = lmq(*between)
    check_told(several, "^lmq: several bindings lead from 'amq.headers' to exchange 'amq.direct': add the key of one")
    keys = several.stderr.partition("(")[2].rstrip(")\n").split(", ")
    told = [json.loads(lmq(*between, "--json", key).stdout)["arguments"]["colour"] for key in keys]
    assert sorted(told) == ["blue", "red"]
    for key in keys:
        client.send("DELETE", f"/api/bindings/%2F/e/amq.headers/e/amq.direct/{key}")
