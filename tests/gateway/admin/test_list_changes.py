from __future__ import annotations

import pytest

from gateway.admin.list_changes import ListChanges
from tests.support.admin import make_view, managed_gateway

pytestmark = pytest.mark.asyncio


async def test_a_list_has_another_number_once_something_in_it_changed_and_few_others(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        changes = ListChanges(make_view(gateway))
        before = changes.look()
        assert before.keys() == {"exchanges", "vhosts", "policies", "users", "permissions", "retained"}
        assert changes.look() == before
        for method, path, said, changed in (
            ("PUT", "/api/exchanges/%2F/e", {"type": "fanout"}, {"exchanges"}),
            ("POST", "/api/bindings/%2F/e/amq.topic/e/e", {"routing_key": "k"}, {"exchanges"}),
            (
                "PUT",
                "/api/policies/%2F/p",
                {"pattern": "^e$", "definition": {"alternate-exchange": "e"}},
                {"policies", "exchanges"},
            ),
            ("PUT", "/api/queues/%2F/q", {}, {"vhosts", "exchanges"}),
            ("PUT", "/api/users/ann", {"password_hash": "", "tags": ""}, {"users", "permissions"}),
            ("PUT", "/api/lmq/users/ann/tags", {"tags": "management"}, {"users", "permissions"}),
            ("PUT", "/api/permissions/%2F/ann", {"configure": "", "write": ".*", "read": ".*"}, {"permissions"}),
            ("PUT", "/api/lmq/users/ann/password", {"password": "x"}, {"permissions"}),
            ("DELETE", "/api/permissions/%2F/ann", None, {"permissions"}),
            ("POST", "/api/lmq/users/ann/disable", {}, {"users", "permissions"}),
            ("PUT", "/api/vhosts/v", {"description": "hers"}, {"vhosts", "exchanges", "policies", "permissions"}),
            ("DELETE", "/api/vhosts/v", None, {"vhosts", "exchanges", "policies", "permissions"}),
            ("DELETE", "/api/policies/%2F/p", None, {"policies", "exchanges"}),
            ("DELETE", "/api/exchanges/%2F/e", None, {"exchanges"}),
            ("DELETE", "/api/users/ann", None, {"users", "permissions"}),
        ):
            (await client.request(method, path, json=said)).raise_for_status()
            now = changes.look()
            assert {name for name in now if now[name] != before[name]} == changed, (method, path)
            before = now


async def test_the_list_of_retained_messages_is_another_one_as_they_come_change_and_go(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, _):
        changes, retained = ListChanges(make_view(gateway)), gateway.broker.retained
        seen = [changes.look()["retained"]]
        for change in (
            lambda: retained.set(b"a", (1).to_bytes(8, "big")),
            lambda: retained.set(b"a", (2).to_bytes(8, "big")),
            lambda: retained.remove(b"a"),
        ):
            change()
            seen.append(changes.look()["retained"])
        retained.remove(b"a")
        assert changes.look()["retained"] == seen[-1]
        assert len(set(seen)) == 4


async def test_exchanges_and_virtual_hosts_are_told_to_change_while_rates_do(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        changes, flows = ListChanges(make_view(gateway)), gateway.broker.flows
        flows.look(1.0)
        before = changes.look()
        said = {"properties": {}, "routing_key": "none", "payload": "x", "payload_encoding": "string"}
        (await client.post("/api/exchanges/%2F/amq.direct/publish", json=said)).raise_for_status()
        changed = []
        for _ in range(4):
            flows.look(1.0)
            now = changes.look()
            changed.append({name for name in now if now[name] != before[name]})
            before = now
        rated = {"exchanges", "vhosts"}
        assert changed == [rated, rated, set(), set()]  # it moves; it stands, which is another rate; nothing
