from __future__ import annotations

import aiormq
import pytest
from fastapi import HTTPException

from gateway.admin.management.places import find_vhosts, get_exchange, get_queue, get_vhost
from tests.support.admin import declare, make_client, make_view, managed_gateway
from tests.support.gateway import running_gateway
from tests.support.logins import quick_hash


@pytest.mark.asyncio
async def test_what_a_path_names_is_found_or_said_to_be_missing(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        view = make_view(gateway)
        vhost = get_vhost(view, "/")
        (queue,) = declare(gateway, "a/b")
        assert get_queue(vhost, "a/b") is queue
        assert get_exchange(vhost, "amq.default").name == ""
        assert list(find_vhosts(view, None)) == list(find_vhosts(view, frozenset({"/", "x"}))) == [vhost]
        for missing in (
            lambda: get_vhost(view, "x"),
            lambda: get_queue(vhost, "x"),
            lambda: get_exchange(vhost, "x"),
        ):
            with pytest.raises(HTTPException) as raised:
                missing()
            assert raised.value.status_code == 404


async def _names(client, path, column="name"):
    answer = await client.get(path)
    assert answer.status_code == 200, (path, answer.text)
    return sorted(item[column] for item in answer.json())


@pytest.mark.asyncio
async def test_who_manages_is_told_of_its_virtual_hosts_alone_and_who_monitors_of_all(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/vhosts/v")
        for name, tag in (("ann", "management"), ("pat", "policymaker"), ("mo", "monitoring")):
            await client.put(f"/api/users/{name}", json={"password_hash": quick_hash("x"), "tags": tag})
        for name in ("ann", "pat"):
            await client.put(f"/api/permissions/v/{name}", json={"configure": ".*", "write": ".*", "read": ".*"})
        for vhost, queue in (("%2F", "theirs"), ("v", "hers")):
            await client.put(f"/api/queues/{vhost}/{queue}", json={"arguments": {"x-dead-letter-exchange": ""}})
            await client.put(f"/api/policies/{vhost}/{queue}", json={"pattern": "^a", "definition": {"max-length": 1}})
            await client.put(f"/api/vhost-limits/{vhost}/max-queues", json={"value": 9})
        host, port = gateway.listening["amqp"]
        other = await aiormq.connect(f"amqp://guest:guest@{host}:{port}/")
        own = await aiormq.connect(f"amqp://ann:x@{host}:{port}/v")
        await other.channel()
        await (await own.channel()).basic_consume("hers", lambda _: None)

        view = make_view(gateway)
        async with make_client(view, auth=("mo", "x")) as monitor, make_client(view, auth=("ann", "x")) as ann:
            for path in ("queues", "policies", "lmq/queues?door=amqp"):
                assert await _names(monitor, f"/api/{path}") == ["hers", "theirs"], path
                assert await _names(ann, f"/api/{path}") == ["hers"], path
            assert await _names(ann, "/api/lmq/queues") == ["hers"]
            assert await _names(ann, "/api/vhosts") == ["v"]
            for path in ("exchanges", "bindings", "vhost-limits", "policies", "queues"):
                assert set(await _names(monitor, f"/api/{path}", "vhost")) == {"/", "v"}, path
                assert set(await _names(ann, f"/api/{path}", "vhost")) == {"v"}, path
            assert await _names(monitor, "/api/connections", "user") == ["ann", "guest"]
            assert await _names(ann, "/api/connections", "user") == ["ann"]
            assert await _names(ann, "/api/connections/username/guest", "user") == []
            assert await _names(monitor, "/api/channels", "user") == ["ann", "guest"]
            assert await _names(ann, "/api/channels", "user") == ["ann"]
            assert len((await ann.get("/api/consumers")).json()) == 1
            assert (await ann.get("/api/lmq/groups")).json() == (await ann.get("/api/lmq/sessions")).json() == []
            (number,) = [one["lmq"]["number"] for one in (await monitor.get("/api/connections/username/guest")).json()]
            assert (await ann.get(f"/api/connections/{number}")).status_code == 404

            for path in (
                "queues/%2F",
                "queues/%2F/theirs",
                "queues/%2F/theirs/bindings",
                "exchanges/%2F",
                "exchanges/%2F/amq.topic",
                "exchanges/%2F/amq.topic/bindings/source",
                "exchanges/%2F/amq.topic/bindings/destination",
                "bindings/%2F",
                "bindings/%2F/e/amq.topic/q/theirs",
                "bindings/%2F/e/amq.topic/q/theirs/k",
                "policies/%2F",
                "policies/%2F/theirs",
                "operator-policies/%2F",
                "vhosts/%2F",
                "vhosts/%2F/connections",
                "vhosts/%2F/channels",
                "consumers/%2F",
                "vhost-limits/%2F",
                "aliveness-test/%2F",
                "explain?topic=a",
                "explain?exchange=amq.topic",
                "explain/publish?exchange=amq.topic",
                "explain/publish?door=mqtt&topic=a",
                "explain/queue?name=theirs",
                "lmq/queues/%25LMQ%25amqp%25%7C2f%25theirs",
                "lmq/fan-out/report",
                "nodes",
                "nodes/lmq@localhost",
                "nodes/lmq@localhost/memory",
                "auth/attempts/lmq@localhost",
            ):
                answer = await ann.get(f"/api/{path}")
                assert answer.status_code == 401, (path, answer.text)
                assert "theirs" not in answer.text or "lmq" in path
            assert (await ann.post("/api/bindings/%2F/e/amq.topic/q/theirs", json={})).status_code == 401
            assert (await ann.get("/api/queues/nowhere")).status_code == 404
        async with make_client(view, auth=("pat", "x")) as policymaker:
            assert await _names(policymaker, "/api/queues") == ["hers"]
            assert (await policymaker.get("/api/policies/%2F")).status_code == 401
        await other.close()
        await own.close()
