from __future__ import annotations

import pytest

from tests.support.commands import call_lmq, check_told, told_json, told_rows


@pytest.mark.slow
def test_rules_are_set_listed_moved_and_removed(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    device = ("--topic", "plant/%c/#", "--door", "mqtt", "--action", "publish", "--for-user", "dev-*")
    assert call_lmq("rule", "add", "devices", "allow", *device, *admin).exit_code == 0
    assert call_lmq("rule", "add", "not eve", "deny", "--for-user", "eve", "--before", "devices", *admin).exit_code == 0
    assert told_rows("rule", "list", *admin) == [
        ["name", "rule", "actions", "of"],
        ["not eve", "deny", "all", "users=eve"],
        ["devices", "allow", "publish", "users=dev-* doors=mqtt topics=plant/%c/#"],
        ["auth.default", "allow", "-", "-"],
    ]
    assert call_lmq("rule", "move", "not eve", "--last", *admin).exit_code == 0
    assert [row[0] for row in told_rows("rule", "list", *admin)][1:] == ["devices", "not eve", "auth.default"]
    assert told_json("rule", "move", "not eve", "--before", "devices", *admin) == {
        "moved": "not eve",
        "before": "devices",
    }
    assert told_json("rule", "add", "devices", "deny", *admin) == {"set": "devices"}
    assert ["devices", "deny", "all", "everybody, everything"] in told_rows("rule", "list", *admin)
    assert [rule["name"] for rule in told_json("rule", "list", *admin)["rules"]] == ["not eve", "devices"]
    for name in ("devices", "not eve"):
        assert told_json("rule", "remove", name, *admin) == {"removed": name}
    check_told(call_lmq("rule", "remove", "devices", *admin), "^lmq: no rule 'devices' in the data folder$", code=4)
    check_told(call_lmq("rule", "move", "devices", *admin), "give --before RULE or --last")
    check_told(call_lmq("rule", "add", "x", "deny", "--topic", "a/#/b", *admin), "^lmq: topics.0: must be ")
    sent = call_lmq("rule", "add", "x", "deny", "--action", "send", *admin)
    check_told(sent, "^lmq: actions.0: must be one of 'publish', [^;]* or 'all'$")


@pytest.mark.slow
def test_the_rule_that_decides_is_told_of_a_publish_that_is_asked_about(running):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    assert call_lmq("user", "add", "ruled", "--new-password", "x", *admin).exit_code == 0
    told = {}
    for name, permit, topic in (("open plant", "allow", "plant/#"), ("closed rest", "deny", "#")):
        assert call_lmq("rule", "add", name, permit, "--topic", topic, "--for-user", "ruled", *admin).exit_code == 0
    for topic in ("plant/1", "other"):
        question = ("explain", "publish", "--topic", topic, "--door", "mqtt", "--as", "ruled")
        said = [line.strip() for line in call_lmq(*question, *admin).stdout.splitlines()]
        told[topic] = [line for line in said if line.startswith(("allowed: ", "refused: "))]
    for name in ("open plant", "closed rest"):
        assert call_lmq("rule", "remove", name, *admin).exit_code == 0
    assert call_lmq("user", "delete", "ruled", "--yes", *admin).exit_code == 0
    assert told == {
        "plant/1": ["allowed: user 'ruled' may publish to topic 'plant/1' by rule 'open plant'"],
        "other": ["refused: user 'ruled' may not publish to topic 'other' by rule 'closed rest'"],
    }
