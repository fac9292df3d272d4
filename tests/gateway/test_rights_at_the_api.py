"""What a user may not read or send at one door, tried at the admin API by users of each tag."""

from __future__ import annotations

import aiomqtt
import pytest
import pytest_asyncio

from gateway.settings.models import AuthSettings
from tests.support.admin import GUEST, make_client, make_view
from tests.support.gateway import running_gateway
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio

TAGS = ("management", "policymaker", "monitoring", "administrator")
AUTH = {
    "users": {f"bob-{tag}": {"password_hash": quick_hash("secret"), "tags": [tag]} for tag in TAGS},
    "rules": [
        {"permit": "deny", "users": ["bob-*"], "topics": ["secret/#"]},
        {"permit": "deny", "users": ["bob-*"], "names": ["hidden"]},
    ],
}
PUBLISH = {"properties": {}, "payload": "forged", "payload_encoding": "string"}
GET = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
LETTERS = {"x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": "secret.x"}


@pytest_asyncio.fixture
async def site(tmp_path):
    """A gateway with something of each kind that no bob may see."""
    async with running_gateway(tmp_path, auth=AuthSettings.model_validate(AUTH)) as gateway:
        host, port = gateway.listening["mqtt"]
        async with make_client(make_view(gateway), auth=GUEST) as admin:
            for name in ("hidden", "mine"):
                await admin.put(f"/api/queues/%2F/{name}", json={"durable": True})
            await admin.put("/api/exchanges/%2F/hidden", json={"type": "fanout"})
            bound = {"routing_key": "secret.#"}
            await admin.post("/api/bindings/%2F/e/amq.topic/q/hidden", json=bound)
            async with aiomqtt.Client(host, port) as device:
                await device.publish("secret/x", "told", qos=1, retain=True)
                await device.publish("$delayed/3600/secret/x", "told", qos=1)
            yield gateway, admin


REQUESTS = {
    "a publish to the topic": ("POST", "/api/exchanges/%2F/amq.topic/publish", {**PUBLISH, "routing_key": "secret.x"}),
    "one with the topic in CC": (
        "POST",
        "/api/exchanges/%2F/amq.topic/publish",
        {**PUBLISH, "routing_key": "open", "properties": {"headers": {"CC": ["secret.x"]}}},
    ),
    "a publish to the exchange": ("POST", "/api/exchanges/%2F/hidden/publish", {**PUBLISH, "routing_key": ""}),
    "a look into the queue": ("POST", "/api/queues/%2F/hidden/get", GET),
    "a get from the queue": ("POST", "/api/queues/%2F/hidden/get", {**GET, "ackmode": "ack_requeue_false"}),
    "a purge": ("DELETE", "/api/queues/%2F/hidden/contents", None),
    "a deletion": ("DELETE", "/api/queues/%2F/hidden", None),
    "a binding to the topic": ("POST", "/api/bindings/%2F/e/amq.topic/q/mine", {"routing_key": "secret.#"}),
    "a binding to all topics": ("POST", "/api/bindings/%2F/e/amq.topic/q/mine", {"routing_key": "#"}),
    "a binding from the exchange": ("POST", "/api/bindings/%2F/e/hidden/q/mine", {"routing_key": ""}),
    "an exchange bound to all topics": ("POST", "/api/bindings/%2F/e/hidden/e/amq.topic", {"routing_key": ""}),
    "a queue whose letters go to the topic": ("PUT", "/api/queues/%2F/new", {"arguments": LETTERS}),
    "a move from the queue": ("POST", "/api/lmq/move", {"source": "hidden", "destination": "mine"}),
}


@pytest.mark.parametrize("tag", TAGS)
async def test_no_request_goes_round_the_rules_whatever_tag_its_user_has(site, tag):
    gateway, admin = site
    async with make_client(make_view(gateway), auth=(f"bob-{tag}", "secret")) as bob:
        for what, (method, path, body) in REQUESTS.items():
            answer = await bob.request(method, path, json=body)
            assert answer.status_code in {401, 403}, what
            assert "told" not in answer.text, what
    messages = (await admin.post("/api/queues/%2F/hidden/get", json={**GET, "count": 9})).json()
    assert [message["payload"] for message in messages] == ["told"]
    assert (await admin.post("/api/queues/%2F/mine/get", json=GET)).json() == []
    bindings = (await admin.get("/api/queues/%2F/mine/bindings")).json()
    assert [binding["source"] for binding in bindings] == [""]


@pytest.mark.parametrize("tag", ["management", "policymaker"])
async def test_bodies_are_told_to_none_that_may_not_read_them(site, tag):
    gateway, _ = site
    light = "%25LMQ%25amqp%25%7C2f%25hidden"
    looks = [
        "/api/lmq/retained/secret%2Fx",
        "/api/lmq/delayed",
        "/api/lmq/messages?topic=secret/x",
        "/api/lmq/messages?queue=hidden",
        "/api/lmq/trace?topic=secret/%23",
        f"/api/lmq/queues/{light}",
        "/api/lmq/topics",
    ]
    async with make_client(make_view(gateway), auth=(f"bob-{tag}", "secret")) as bob:
        for path in looks:
            answer = await bob.get(path)
            assert "told" not in answer.text, path
            assert "secret/x" not in answer.text or answer.status_code >= 400, path
    async with make_client(make_view(gateway), auth=GUEST) as admin:
        assert "secret/x" in (await admin.get("/api/lmq/retained/secret%2Fx")).text
