from __future__ import annotations

import json

import pytest

from gateway.auth import rules
from gateway.auth.rule_book import MANY
from gateway.settings.rules import RuleSettings
from lmq.remoting.signature import AccessKeys
from tests.support.rocketmq_access import (
    CREATE_ACL,
    CREATE_USER,
    DELETE_ACL,
    DELETE_USER,
    GET_ACL,
    LIST_ACLS,
    ROOT,
    UPDATE_ACL,
    ask_as,
    open_site,
    pull_as,
    send_as,
)

ANN = AccessKeys("ann", "12345678")


@pytest.fixture
def site(tmp_path, engine_maker):
    site = open_site(tmp_path / "d", engine_maker)
    root = site.connect()
    ask_as(ROOT, root, CREATE_USER, {"password": ANN.secret_key}, username="ann")
    for topic in ("orders", "orders-eu", "orders-us", "bills"):
        assert send_as(ROOT, root, topic) == 0
    yield site
    site.close()


def entry(resource, actions, decision="Allow", **more):
    return {"resource": resource, "actions": actions.split(","), "decision": decision, **more}


def change(site, code, *entries, kind="Custom"):
    said = {"subject": "User:ann", "policies": [{"policyType": kind, "entries": list(entries)}]}
    return ask_as(ROOT, site.connect(), code, said, subject="User:ann")


def rights(site):
    """Return what the user may send to (w) and read (r) of the topics."""
    found = {}
    for topic in ("orders", "orders-eu", "orders-us", "bills"):
        may_write = send_as(ANN, site.connect(), topic) != 16
        may_read = "to read" not in (pull_as(ANN, site.connect(), topic).remark or "")
        found[topic] = "w" * may_write + "r" * may_read
    return found


def test_a_list_says_what_may_be_sent_to_and_read(site):
    assert rights(site) == dict.fromkeys(("orders", "orders-eu", "orders-us", "bills"), "")
    assert change(site, CREATE_ACL, entry("Topic:orders", "Pub,Sub"), entry("Topic:bills", "Sub")).code == 0
    assert rights(site) == {"orders": "wr", "orders-eu": "", "orders-us": "", "bills": "r"}


def test_a_name_goes_before_a_longer_beginning_that_before_a_shorter_one_and_all_come_last(site):
    change(
        site,
        CREATE_ACL,
        entry("*", "All"),
        entry("Topic:orders*", "Sub", "Deny"),
        entry("Topic:orders-*", "Sub"),
        entry("Topic:orders-us", "Sub", "Deny"),
    )
    assert rights(site) == {"orders": "w", "orders-eu": "wr", "orders-us": "w", "bills": "wr"}


def test_entries_of_the_kind_custom_go_before_those_of_default(site):
    change(site, CREATE_ACL, entry("Topic:orders", "Sub", "Deny"), kind="Default")
    change(site, CREATE_ACL, entry("Topic:*", "Sub"))
    assert rights(site)["orders"] == "r"


def test_an_entry_is_for_the_addresses_that_it_names(site):
    change(site, CREATE_ACL, entry("Topic:orders", "Pub", sourceIps=["10.0.0.0/8"]))
    assert rights(site)["orders"] == ""
    change(site, UPDATE_ACL, entry("Topic:orders", "Pub", sourceIps=["127.0.0.0/8"]))
    assert rights(site)["orders"] == "w"


def test_an_update_replaces_entries_of_the_same_resource_and_leaves_the_others(site):
    assert "is not exist" in change(site, UPDATE_ACL, entry("Topic:orders", "Sub")).remark
    change(site, CREATE_ACL, entry("Topic:orders", "Pub"), entry("Topic:bills", "Pub"))
    change(site, UPDATE_ACL, entry("Topic:orders", "Sub,Get,List"))
    assert rights(site) == {"orders": "r", "orders-eu": "", "orders-us": "", "bills": "w"}
    (told,) = json.loads(bytes(ask_as(ROOT, site.connect(), LIST_ACLS, resourceFilter="orders").body))
    wanted = {"policyType": "Custom", "entries": [entry("Topic:orders", "Sub,Get,List")]}
    assert told == {"subject": "User:ann", "policies": [wanted]}


def test_an_entry_and_a_whole_list_are_taken_away(site):
    change(site, CREATE_ACL, entry("Topic:orders", "Pub"), entry("Topic:bills", "Pub"))
    root = site.connect()
    ask_as(ROOT, root, DELETE_ACL, subject="User:ann", policyType="Custom", resource="Topic:bills")
    assert (rights(site)["orders"], rights(site)["bills"]) == ("w", "")
    ask_as(ROOT, root, DELETE_ACL, subject="User:ann")
    assert rights(site)["orders"] == ""
    assert bytes(ask_as(ROOT, root, GET_ACL, subject="User:ann").body) == b""
    assert bytes(ask_as(ROOT, root, LIST_ACLS).body) == b""
    assert len(site.authenticator.rules.stored) == 0


def test_a_list_goes_with_its_user(site):
    change(site, CREATE_ACL, entry("Topic:orders", "Pub"))
    root = site.connect()
    ask_as(ROOT, root, DELETE_USER, username="ann")
    ask_as(ROOT, root, CREATE_USER, {"password": ANN.secret_key}, username="ann")
    assert rights(site)["orders"] == ""


def test_lists_outlive_the_process(site, tmp_path, engine_maker):
    change(site, CREATE_ACL, entry("Topic:orders", "Pub"))
    site.close()
    again = open_site(tmp_path / "d", engine_maker)
    assert rights(again)["orders"] == "w"
    assert b"Topic:orders" in bytes(ask_as(ROOT, again.connect(), GET_ACL, subject="User:ann").body)
    again.close()


@pytest.mark.parametrize(
    ("subject", "entries", "code", "remark"),
    [
        ("User:nobody", [entry("Topic:orders", "Pub")], 16, "is not exist"),
        ("ann", [entry("Topic:orders", "Pub")], 29, "the subject is to be User:NAME"),
        ("User:ann", [entry("Topic:orders", "Fly")], 29, "actions"),
        ("User:ann", [entry("Namespace:x", "Pub")], 29, "resource"),
        ("User:ann", [entry("Topic:a*b", "Pub")], 29, "in it"),
        ("User:ann", [entry("Topic:re:.*", "Pub")], 29, "in it"),
        ("User:ann", [entry("Topic:%c", "Pub")], 29, "in it"),
        ("User:ann", [entry("Topic:orders", "Get", "Deny")], 29, "cannot be denied"),
        ("User:ann", [entry("Topic:orders", "Pub", sourceIps=["here"])], 29, "must be an address"),
        ("User:ann", [entry("Topic:orders", "Pub")] * 1_001, 29, "entries"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(site, subject, entries, code, remark):
    said = {"policies": [{"policyType": "Custom", "entries": entries}]}
    answer = ask_as(ROOT, site.connect(), CREATE_ACL, said, subject=subject)
    assert (answer.code, remark in answer.remark) == (code, True), answer.remark
    assert len(site.authenticator.rules.stored) == 0


def uses_of(site, name):
    """Return what the user may do: pull the topic of a name as the group of it or as another, and so on."""
    queue = {"topic": name, "queueId": 0}
    wanted = {"topic": name, "subString": "*", "subVersion": 1, "expressionType": "TAG"}
    consumer = {"groupName": name, "consumeType": "CONSUME_PASSIVELY", "subscriptionDataSet": [wanted]}
    peer = site.connect()
    pop = {
        "consumerGroup": name, "queueId": -1, "maxMsgNums": 1, "invisibleTime": 60_000, "pollTime": 0, "bornTime": 0,
        "initMode": 0, "expType": "TAG", "exp": "*", "order": "false",
    }  # fmt: skip
    found = {
        "topic": "to read" not in (pull_as(ANN, peer, name, "g").remark or ""),
        "pull": pull_as(ANN, peer, name, name).code != 16,
        "pop": ask_as(ANN, peer, 200_050, topic=name, **pop).code != 16,
        "commit": ask_as(ANN, peer, 15, **queue, consumerGroup=name, commitOffset=0).code == 0,
        "retries": "to read" not in (pull_as(ANN, peer, f"%RETRY%{name}", name).remark or ""),
        "set up": ask_as(ANN, peer, 200, {"groupName": name}).code == 0,
        "change topic": ask_as(
            ANN, peer, 17, topic=name, readQueueNums=8, writeQueueNums=8, perm=6, topicFilterType="SINGLE_TAG"
        ).code == 0,
    }  # fmt: skip
    ask_as(ANN, peer, 34, {"clientID": "ann", "consumerDataSet": [consumer]})
    found["join"] = bool(site.door.clients.members_of(name))
    locks = {"consumerGroup": name, "clientId": "ann", "mqSet": [{**queue, "brokerName": "b"}]}
    found["lock"] = b"brokerName" in bytes(ask_as(ANN, peer, 41, locks).body)
    peer.close()
    return {use for use, is_allowed in found.items() if is_allowed}


CONSUMES = {"topic", "pull", "pop", "commit", "join", "lock", "retries"}


@pytest.mark.parametrize(
    ("entries", "uses"),
    [
        ([entry("Topic:orders", "All")], {"topic", "change topic"}),
        ([entry("Group:orders", "All")], {"retries", "set up"}),
        ([entry("Topic:orders", "Sub"), entry("Group:orders", "Sub")], CONSUMES),
        ([entry("Topic:*", "Sub"), entry("Group:ord*", "Sub,Update")], CONSUMES | {"set up"}),
        ([entry("*", "All"), entry("Group:orders", "Sub", "Deny")], {"topic", "set up", "change topic"}),
        ([entry("Topic:*", "Sub"), entry("Group:bills", "Sub")], {"topic"}),
        ([entry("Cluster:*", "All")], set()),
        ([entry("*", "All")], CONSUMES | {"set up", "change topic"}),
    ],
)
def test_topics_and_groups_of_one_name_are_told_apart(site, entries, uses):
    assert change(site, CREATE_ACL, *entries).code == 0
    assert uses_of(site, "orders") == uses


def test_the_broker_s_own_settings_are_the_cluster_s(site):
    change(site, CREATE_ACL, entry("Topic:broker", "All"), entry("Group:broker", "All"))
    assert ask_as(ANN, site.connect(), 26).code == 16
    change(site, CREATE_ACL, entry("Cluster:*", "Update"))
    assert ask_as(ANN, site.connect(), 26).code == 0


def test_a_list_whose_rules_cannot_be_indexed_is_refused_and_those_before_stay(site, monkeypatch):
    many = [(f"x{i}", RuleSettings(permit="allow", names=(f"q{i}",))) for i in range(MANY)]
    site.authenticator.rules.stored.replace("x", many)
    assert rights(site)["orders"] == ""
    assert ask_as(ROOT, site.connect(), LIST_ACLS).code == 0
    site.authenticator.book.index_in_steps(lambda _, step: None, lambda: None)
    monkeypatch.setattr(rules, "PATTERNS_A_STEP", 0)
    answer = change(site, CREATE_ACL, entry("Topic:orders", "Sub"))
    assert answer.code == 1
    assert "not in force" in answer.remark
    monkeypatch.undo()
    assert rights(site)["orders"] == ""
