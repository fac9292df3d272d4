from __future__ import annotations

import pytest

from gateway.admin.management.bindings import properties_key
from gateway.amqp.field_table import Field
from tests.support.admin import declare, managed_gateway

pytestmark = pytest.mark.asyncio


async def test_bindings_are_made_told_from_both_ends_and_taken_back(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "q")
        between = "/api/bindings/%2F/e/amq.topic/q/q"
        answer = await client.post(between, json={"routing_key": "a.#", "arguments": {}})
        assert (answer.status_code, answer.headers["location"]) == (201, "q/a.%2523")
        (found,) = (await client.get(between)).json()
        assert found == {
            "source": "amq.topic",
            "vhost": "/",
            "destination": "q",
            "destination_type": "queue",
            "routing_key": "a.#",
            "arguments": {},
            "properties_key": "a.%23",
        }
        implicit = {**found, "source": "", "routing_key": "q", "properties_key": "q"}
        for path in ("/api/bindings", "/api/bindings/%2F", "/api/queues/%2F/q/bindings"):
            assert (await client.get(path)).json() == [implicit, found]
        assert (await client.get("/api/exchanges/%2F/amq.topic/bindings/source")).json() == [found]
        assert (await client.get("/api/exchanges/%2F/amq.default/bindings/source")).json() == [implicit]
        for quoted in ("a.%2523", "a.%23"):  # the name from the list as it is quoted for a path, and as it is
            assert (await client.get(f"{between}/{quoted}")).json() == found
        assert (await client.get(f"{between}/other")).status_code == 404
        assert (await client.delete(f"{between}/a.%23")).status_code == 204
        assert (await client.get(between)).json() == []


async def test_a_binding_is_not_taken_for_one_whose_key_looks_like_its_quoted_name(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "q")
        between = "/api/bindings/%2F/e/amq.direct/q/q"
        for key in ("a+b", "a b"):
            await client.post(between, json={"routing_key": key, "arguments": {}})
        names = {one["routing_key"]: one["properties_key"] for one in (await client.get(between)).json()}
        assert names == {"a+b": "a%2Bb", "a b": "a+b"}
        assert (await client.delete(f"{between}/a%2Bb")).status_code == 204  # the name `a+b`, quoted for a path
        assert [one["routing_key"] for one in (await client.get(between)).json()] == ["a+b"]


async def test_exchanges_and_headers_are_bound(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "q")
        between = "/api/bindings/%2F/e/amq.headers/q/q"
        answer = await client.post(between, json={"arguments": {"x-match": "any", "kind": "a", "size": 3}})
        name = answer.headers["location"].removeprefix("q/")
        (found,) = (await client.get(between)).json()
        assert (found["arguments"], found["properties_key"]) == ({"x-match": "any", "kind": "a", "size": 3}, name)
        assert (await client.delete(f"{between}/{name}")).status_code == 204
        between = "/api/bindings/%2F/e/amq.direct/e/amq.fanout"
        assert (await client.post(between, json={})).headers["location"] == "amq.fanout/~"
        (found,) = (await client.get("/api/exchanges/%2F/amq.fanout/bindings/destination")).json()
        assert (found["source"], found["destination_type"]) == ("amq.direct", "exchange")
        assert (await client.get(between)).json() == [found]
        assert (await client.delete(f"{between}/~")).status_code == 204


async def test_a_binding_by_values_that_json_has_no_type_for_is_taken_back(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "q")
        vhost = gateway.doors["amqp"].vhost
        exchange = vhost.exchanges.get("amq.headers")
        said = {"at": Field("timestamp", 7), "part": Field("decimal", b"\1\0\0\0\x0f"), "list": Field("array", b"t\1V")}
        vhost.bind(exchange, ("q", "", exchange.read_terms(said)))
        between = "/api/bindings/%2F/e/amq.headers/q/q"
        (found,) = (await client.get(between)).json()
        assert found["arguments"] == {"x-match": "all", "at": 7, "part": 1.5, "list": [True, None]}
        assert (await client.delete(f"{between}/{found['properties_key']}")).status_code == 204
        assert (await client.get(between)).json() == []


async def test_bindings_of_one_key_are_made_told_and_taken_back_by_their_arguments(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "q")
        every = [{}, {"a": 1}, {"a": "1"}, {"n": None, "f": 0.1, "l": [1e39, "x"], "t": {"k": True}}]
        asked = [{"routing_key": "k", "arguments": one} for one in (*every, every[1])]
        for way, end in (("amq.topic/q/q", "q"), ("amq.direct/e/amq.fanout", "amq.fanout")):
            between = f"/api/bindings/%2F/e/{way}"
            made = [await client.post(between, json=one) for one in asked]
            names = [answer.headers["location"].removeprefix(f"{end}/") for answer in made]
            assert (len(set(names)), names[1]) == (4, names[4])
            told = (await client.get(between)).json()
            assert [(one["arguments"], one["properties_key"]) for one in told] == list(zip(every, names, strict=False))
            for i, name in enumerate(names[:4]):
                assert (await client.delete(f"{between}/{name}")).status_code == 204
                assert (await client.get(between)).json() == told[i + 1 :]
        too_long = await client.post("/api/bindings/%2F/e/amq.topic/q/q", json={"arguments": {"x" * 256: 1}})
        assert (too_long.status_code, too_long.json()["reason"]) == (
            400,
            "a name in a table has 256 bytes, more than 255",
        )


async def test_what_is_not_there_cannot_be_bound(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        answer = await client.post("/api/bindings/%2F/e/amq.direct/q/none", json={})
        assert (answer.status_code, answer.json()["reason"]) == (404, "no queue 'none' in vhost '/'")
        assert (await client.post("/api/bindings/%2F/e/none/q/none", json={})).status_code == 404
        assert (await client.post("/api/bindings/%2F/e/amq.direct/x/none", json={})).status_code == 400


async def test_a_binding_is_called_by_its_key_and_arguments():
    assert properties_key("", {}) == "~"
    assert properties_key("a~b", {}) == "a%7Eb"
    assert properties_key("w.*.#/x y", {}) == "w.%2A.%23%2Fx+y"
    assert properties_key("a", {"b": 1}) == properties_key("a", {"b": 1}) != properties_key("a", {"b": 2})


@pytest.mark.parametrize("name", ["", "amq.default"])
async def test_the_exchange_without_a_name_is_asked_for_by_either_name(tmp_path, name):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "q")
        (binding,) = (await client.get("/api/queues/%2F/q/bindings")).json()
        assert (binding["source"], binding["routing_key"], binding["properties_key"]) == ("", "q", "q")
        exchange, between = f"/api/exchanges/%2F/{name}", f"/api/bindings/%2F/e/{name}"
        for path, told in (
            (f"{exchange}/bindings/source", [binding]),
            (f"{exchange}/bindings/destination", []),
            (f"{between}/q/q", [binding]),
            (f"{between}/q/q/q", binding),
            (f"{between}/e/amq.topic", []),
        ):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()) == (200, told)
        said = {"routing_key": "q", "payload": "x", "payload_encoding": "string", "properties": {}}
        assert (await client.post(f"{exchange}/publish", json=said)).json() == {"routed": True}
        for refused in (
            await client.post(f"{between}/q/q", json={"routing_key": "k"}),
            await client.delete(f"{between}/q/q/q"),
            await client.post(f"{between}/e/amq.topic", json={}),
            await client.post("/api/bindings/%2F/e/amq.topic/e/amq.default", json={}),
        ):
            assert refused.status_code == 401
