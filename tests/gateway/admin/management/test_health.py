from __future__ import annotations

from urllib.parse import quote

import pytest

from gateway.settings.listen import find_address
from gateway.settings.models import AmqpSettings, MqttSettings
from tests.support.admin import managed_gateway
from tests.support.gateway import ANY_PORT
from tests.support.listening import secure

pytestmark = pytest.mark.asyncio

FINE = (
    "aliveness-test/%2F",
    "healthchecks/node",
    "healthchecks/node/any",
    "health/checks/virtual-hosts",
    "health/checks/alarms",
    "health/checks/local-alarms",
    "health/checks/node-is-mirror-sync-critical",
    "health/checks/node-is-quorum-critical",
    "health/checks/protocol-listener/amqp",
    "health/checks/protocol-listener/mqtt",
    "health/checks/certificate-expiration/1/months",
)


async def test_a_gateway_that_is_well_says_so(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        for path in FINE:
            answer = await client.get(f"/api/{path}")
            assert (answer.status_code, answer.json()["status"]) == (200, "ok"), path
        port = gateway.listening["amqp"][1]
        assert (await client.get(f"/api/health/checks/port-listener/{port}")).json() == {"status": "ok", "port": port}
        assert (await client.get("/api/cluster-name")).json() == {"name": "lmq"}


async def test_what_is_wrong_is_told_with_503(tmp_path):
    async with managed_gateway(tmp_path, free_bytes=lambda: 7) as (_, client):
        answer = await client.get("/api/health/checks/alarms")
        assert (answer.status_code, answer.json()) == (503, {"status": "failed", "reason": "the disk is low on room"})
        answer = await client.get("/api/health/checks/port-listener/1")
        assert (answer.status_code, answer.json()["missing"]) == (503, 1)
        answer = await client.get("/api/health/checks/protocol-listener/stomp")
        assert (answer.status_code, "amqp" in answer.json()["protocols"]) == (503, True)
        assert (await client.get("/api/aliveness-test/none")).status_code == 404


async def test_all_addresses_of_a_door_and_all_names_of_its_protocol_are_found(tmp_path):
    socket = f"unix:{tmp_path}/mqtt.sock"
    listens = [ANY_PORT, ANY_PORT, secure(optional=False), {"address": ANY_PORT, "websocket": "/mqtt"}, socket]
    blocks = {"mqtt": MqttSettings(listen=listens), "amqp": AmqpSettings(listen=[ANY_PORT, secure(optional=False)])}
    async with managed_gateway(tmp_path, **blocks) as (gateway, client):
        bound = [find_address(line.split()[2]) for line in gateway.lines() if line.split()[1] != "admin"]
        told = (await client.get("/api/overview")).json()["listeners"]
        assert sorted((one["ip_address"], one["port"]) for one in told) == sorted(bound)
        for port in {port for _, port in bound if port}:
            assert (await client.get(f"/api/health/checks/port-listener/{port}")).status_code == 200, port
        assert (await client.get("/api/health/checks/port-listener/0")).status_code == 503
        for name in ("amqp091", "AMQP", "amqps", "amqp/ssl", "mqtt311", "mqtts", "web-mqtt", "amqp091,mqtt,web-mqtt"):
            answer = await client.get(f"/api/health/checks/protocol-listener/{quote(name, safe='')}")
            assert (answer.status_code, answer.json()) == (200, {"status": "ok", "protocol": name}), name
        for name in ("amqp10", "https", "wss", "stomp", "web-mqtt/tls"):
            answer = await client.get(f"/api/health/checks/protocol-listener/amqp,{quote(name, safe='')}")
            assert (answer.status_code, answer.json()["missing"]) == (503, name), name


async def test_newer_checks_are_answered(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        for check in (
            "ready-to-serve-clients",
            "is-in-service",
            "below-node-connection-limit",
            "quorum-queues-without-elected-leaders/vhost/%2F/pattern/.*",
        ):
            answer = await client.get(f"/api/health/checks/{check}")
            assert (answer.status_code, answer.json()["status"]) == (200, "ok"), check
