from __future__ import annotations

import asyncio

import pytest

from gateway.auth import rules as rules_module
from gateway.auth.rule_book import MANY, RulesError
from gateway.settings.models import AuthSettings
from gateway.settings.rules import RuleSettings
from tests.support.admin import managed_gateway

pytestmark = pytest.mark.asyncio
RULES = "/api/lmq/rules"


def _may(gateway, topic, user=""):
    return gateway.authenticator.find_rights("mqtt", user, "dev").may_publish(topic)


async def test_rule_is_at_once_in_force_after_those_of_the_settings_and_outlives_a_start(tmp_path):
    rights = AuthSettings(rules=(RuleSettings(permit="deny", topics=("secret/#",)),), default="deny")
    async with managed_gateway(tmp_path / "data", rights=rights) as (gateway, client):
        kept = gateway.authenticator.find_rights("mqtt", "", "dev")
        assert not kept.may_publish(b"plant/1")
        all_topics = {"permit": "allow", "actions": ["publish"], "topics": ["#"]}
        assert (await client.put(f"{RULES}/devices", json=all_topics)).status_code == 201
        assert kept.may_publish(b"plant/1")
        assert not kept.may_publish(b"secret/1")
        assert (await client.put(f"{RULES}/first", json={"permit": "deny", "topics": ["plant/#"]})).status_code == 201
        assert kept.may_publish(b"plant/1")
        assert (await client.post(f"{RULES}/first/move", json={"before": "devices"})).status_code == 204
        assert not kept.may_publish(b"plant/1")
        assert kept.find_decider("publish", b"plant/1") == "rule 'first'"
        found = (await client.get(RULES)).json()
        assert [(rule["name"], rule["of_settings"]) for rule in found["rules"]] == [
            ("auth.rules[0]", True),
            ("first", False),
            ("devices", False),
        ]
        assert found["default"] == "deny"
        assert found["rules"][1]["text"] == "deny all topics=plant/#"
        page = (await client.get(f"{RULES}?page=1&page_size=2&columns=name")).json()
        assert page["items"] == [{"name": "auth.rules[0]"}, {"name": "first"}]
        assert (page["total_count"], page["page_count"], page["default"]) == (3, 2, "deny")
        found = (await client.get(f"{RULES}?name=D&sort=name")).json()  # without a page as ever
        assert [rule["name"] for rule in found["rules"]] == ["devices"]
    async with managed_gateway(tmp_path / "data", rights=rights) as (gateway, client):
        assert not _may(gateway, b"plant/1")
        assert (await client.delete(f"{RULES}/first")).status_code == 204
        assert _may(gateway, b"plant/1")
        await gateway.reload(gateway.settings.model_copy(update={"auth": AuthSettings(default="deny")}))
        assert _may(gateway, b"secret/1")
        assert (await client.delete(f"{RULES}/devices")).status_code == 204
        assert not _may(gateway, b"plant/1")


async def test_what_is_no_rule_or_not_there_is_refused(tmp_path):
    async with managed_gateway(tmp_path / "data") as (_, client):
        for wrong in (
            {},
            {"permit": "maybe"},
            {"permit": "deny", "topics": ["a/#/b"]},
            {"permit": "deny", "tpoics": []},
        ):
            assert (await client.put(f"{RULES}/x", json=wrong)).status_code == 400, wrong
        assert (await client.put(f"{RULES}/x?before=none", json={"permit": "deny"})).status_code == 404
        assert (await client.delete(f"{RULES}/auth.rules%5B0%5D")).status_code == 404
        assert (await client.post(f"{RULES}/x/move", json={})).status_code == 404
        assert (await client.get(RULES)).json() == {"rules": [], "default": "allow"}


async def test_change_among_many_rules_is_in_force_when_it_is_answered(tmp_path):
    rules = tuple(RuleSettings(permit="allow", topics=(f"t/{i}/#",)) for i in range(MANY))
    async with managed_gateway(tmp_path, rights=AuthSettings(rules=rules)) as (gateway, client):
        kept = gateway.authenticator.find_rights("mqtt", "", "dev")
        assert kept.may_publish(b"secret/1")
        asking = asyncio.create_task(client.put(f"{RULES}/no", json={"permit": "deny", "topics": ["secret/#"]}))
        while not gateway.authenticator.rules.stored.has("no"):
            assert kept.may_publish(b"secret/1")
            await asyncio.sleep(0)
        assert (await asking).status_code == 201
        assert not kept.may_publish(b"secret/1")
        assert (await client.post(f"{RULES}/no/move", json={})).status_code == 204
        assert (await client.delete(f"{RULES}/no")).status_code == 204
        assert kept.may_publish(b"secret/1")
        denied = (*rules, RuleSettings(permit="deny", topics=("secret/#",)))
        await gateway.reload(gateway.settings.model_copy(update={"auth": AuthSettings(rules=denied)}))
        assert not kept.may_publish(b"secret/1")


async def test_change_among_many_rules_that_cannot_be_indexed_fails_and_those_before_stay(tmp_path, monkeypatch):
    rules = tuple(RuleSettings(permit="allow", topics=(f"t/{i}/#",)) for i in range(MANY))
    async with managed_gateway(tmp_path, rights=AuthSettings(rules=rules)) as (gateway, client):
        kept = gateway.authenticator.find_rights("mqtt", "", "dev")
        assert kept.may_publish(b"secret/1")
        monkeypatch.setattr(rules_module, "PATTERNS_A_STEP", 0)
        answer = await client.put(f"{RULES}/no", json={"permit": "deny", "topics": ["secret/#"]})
        assert (answer.status_code, answer.json()["error"]) == (500, "internal_error")
        assert "not in force" in answer.json()["reason"]
        denied = (*rules, RuleSettings(permit="deny", topics=("secret/#",)))
        with pytest.raises(RulesError):
            await gateway.reload(gateway.settings.model_copy(update={"auth": AuthSettings(rules=denied)}))
        assert kept.may_publish(b"secret/1")
        monkeypatch.undo()
        assert (await client.put(f"{RULES}/no", json={"permit": "deny", "topics": ["secret/#"]})).status_code == 204
        assert not kept.may_publish(b"secret/1")
