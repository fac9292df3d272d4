from __future__ import annotations

import base64
import hashlib

import pytest

from core.errors import DiskFullError
from gateway.admin.management.definitions_plan import DefinitionsError
from gateway.admin.management.definitions_users import UserPlan, tell_users
from gateway.auth.stored_users import StoredUsers
from gateway.auth.user_quotas import UserQuotas
from gateway.auth.users import check_password, hash_password
from gateway.regex import compile_regex
from gateway.settings.models import AuthSettings
from tests.support.stores import Rows

SALT = b"salt"
HASH = base64.b64encode(SALT + hashlib.sha256(SALT + b"secret").digest()).decode()
BOB = {"name": "bob", "password_hash": HASH, "hashing_algorithm": "rabbit_password_hashing_sha256", "limits": {}}
NAMES = {"user": "bob", "vhost": "/", "configure": "", "write": "^w", "read": ".*"}
KEYS = {"user": "bob", "vhost": "/", "exchange": "amq.topic", "write": "^{username}", "read": ".*"}
FILE = {"users": [{**BOB, "tags": ["monitoring"]}], "permissions": [NAMES], "topic_permissions": [KEYS]}


def run(stored, sections, quotas=None):
    plan = UserPlan(stored, quotas or UserQuotas(AuthSettings(), int), lambda user: user == "of-settings")
    for _ in plan.check(sections, lambda vhost: vhost == "/"):
        pass
    for _ in plan.carry_out():
        pass
    return plan


def told(stored, quotas=None):
    found = {}
    for section, item in tell_users(stored, quotas or UserQuotas(AuthSettings(), int)):
        found.setdefault(section, []).append(item)
    return found


def test_users_of_rabbitmq_come_in_with_their_passwords_and_go_out_as_they_came():
    stored = StoredUsers()
    changes = []
    stored.on_changed = lambda: changes.append(1)
    for _ in range(2):
        plan = run(stored, FILE)
        assert (plan.counts, plan.left_out) == ({"users": 1, "permissions": 1, "topic_permissions": 1}, [])
    assert len(changes) == 1  # of all that a file has, and of nothing
    assert check_password(b"secret", stored.users["bob"].kept)
    assert told(stored) == FILE


@pytest.mark.parametrize("is_broken_off", [True, False])
def test_what_an_import_has_made_counts_also_where_it_does_not_come_to_its_end(is_broken_off):
    class Full(Rows):
        def put(self, key, value):
            if key.startswith(b'["p"'):
                raise DiskFullError("/data")
            super().put(key, value)

    changes = []
    stored = StoredUsers(Rows() if is_broken_off else Full())
    stored.on_user_changed = changes.append
    stored.on_changed = lambda: changes.append("all")
    plan = UserPlan(stored, UserQuotas(AuthSettings(), int), lambda _: False)
    list(plan.check(FILE, lambda vhost: vhost == "/"))
    steps = plan.carry_out()
    if is_broken_off:
        next(steps)
        next(steps)
        assert changes == []
        steps.close()
    else:
        with pytest.raises(DiskFullError):
            list(steps)
    assert changes == ["bob", "all"]
    assert not stored.rows["bob"].may_enter("/")
    assert not stored.rows["bob"].may_key("write", "/", "amq.topic", "not.of.bob", "")


def test_an_import_that_a_kill_breaks_off_leaves_nobody_with_more_than_the_file_says():
    table = Rows()
    stored = StoredUsers(table)
    plan = UserPlan(stored, UserQuotas(AuthSettings(), int), lambda _: False)
    ann = {**BOB, "name": "ann", "tags": ["administrator"], "lmq_disabled": True}
    list(plan.check({**FILE, "users": [*FILE["users"], ann]}, lambda vhost: vhost == "/"))
    for _ in plan.carry_out():  # a commit may begin behind each step
        left = StoredUsers(table)
        assert "ann" not in left.users or left.users["ann"].is_disabled
        bob = left.rows["bob"]
        assert not (bob.may_enter("/") and bob.may_key("write", "/", "amq.topic", "not.of.bob", ""))
    assert left.rows["bob"].may_enter("/")


def test_hash_that_rabbitmq_does_not_read_is_told_beside_an_empty_one():
    stored = StoredUsers()
    kept = hash_password("secret")
    stored.put_user("ann", kept, ())
    stored.put_user("certified", "", ())
    assert [(user["password_hash"], user.get("lmq_password_hash")) for user in told(stored)["users"]] == [
        ("", kept),
        ("", None),
    ]
    other = StoredUsers()
    assert run(other, told(stored)).left_out == []
    assert {name: user.kept for name, user in other.users.items()} == {"ann": kept, "certified": ""}


def test_a_disabled_user_is_disabled_wherever_the_definitions_come_to():
    stored, other = StoredUsers(), StoredUsers()
    stored.put_user("ann", hash_password("secret"), ())
    stored.disable_user("ann", is_disabled=True)
    run(other, told(stored))
    assert other.users["ann"].is_disabled


def test_what_a_user_signs_with_stays():
    stored = StoredUsers()
    stored.put_user("bob", "", (), "a secret")
    run(stored, FILE)
    assert stored.users["bob"].secret == b"a secret"
    assert "a secret" not in str(told(stored))


@pytest.mark.parametrize(
    ("section", "item", "said"),
    [
        ("users", {**BOB, "name": "guest"}, "user 'guest': here guest comes in from this machine only"),
        ("users", {**BOB, "name": "of-settings"}, "user 'of-settings': there is one of this name in the settings"),
        ("users", {**BOB, "hashing_algorithm": "rabbit_password_hashing_md5"}, "an algorithm that is not known"),
        ("users", {**BOB, "password_hash": "x"}, "user 'bob': the password's hash is not a password hash"),
        ("permissions", {**NAMES, "user": "guest"}, "permissions of user 'guest' in vhost '/': here guest"),
        (
            "permissions",
            {**NAMES, "user": "nobody"},
            "permissions of user 'nobody' in vhost '/': there is no such user",
        ),
        ("permissions", {**NAMES, "user": "of-settings", "read": "("}, "of user 'of-settings' in vhost '/': "),
        (
            "topic_permissions",
            {**KEYS, "user": "nobody"},
            "at exchange 'amq.topic' in vhost '/': there is no such user",
        ),
    ],
)
def test_what_has_no_home_here_is_listed(section, item, said):
    stored = StoredUsers()
    plan = run(stored, {section: [item]})
    assert len(plan.left_out) == 1
    assert said in plan.left_out[0]
    assert told(stored) == {}


@pytest.mark.parametrize(
    ("section", "item", "said"),
    [
        ("users", {"name": ""}, "user: name: must not be empty"),
        ("users", "bob", "user: must be an object of names and values"),
        ("permissions", {**NAMES, "vhost": "none"}, "permissions of user 'bob': no vhost 'none'"),
        ("topic_permissions", {"user": "bob"}, "topic permission: vhost: is missing"),
    ],
)
def test_nothing_is_changed_where_something_is_wrong(section, item, said):
    stored = StoredUsers()
    with pytest.raises(DefinitionsError) as raised:
        run(stored, {**FILE, section: [*FILE[section], item]})
    assert said in str(raised.value)
    assert told(stored) == {}


def test_limits_come_in_and_go_out_with_their_user_and_others_are_left_out():
    stored, quotas = StoredUsers(), UserQuotas(AuthSettings(), int)
    limits = {"max-connections": 5, "max-channels": 0}
    wrong = {"odd": 1, "bytes-rate": 10**400, "messages-rate": 0, "bytes-out-rate": True, "connects-rate": "7"}
    for _ in range(2):
        plan = run(stored, {"users": [{**BOB, "tags": [], "limits": {**limits, **wrong}}]}, quotas)
        assert plan.left_out == [
            "limit 'odd' of user 'bob': there is none of that name here",
            "limit 'bytes-rate' of user 'bob': must be at most 9007199254740991, or below 0 for any number",
            "limit 'messages-rate' of user 'bob': must be at least 1, or below 0 for any number",
            "limit 'bytes-out-rate' of user 'bob': must be a whole number",
            "limit 'connects-rate' of user 'bob': must be a whole number",
        ]
    assert quotas.find("bob")[:2] == (5, 0)
    assert told(stored, quotas)["users"][0]["limits"] == limits


LOOK_AROUND = ("^(?!secret).*", "^(?=.*x)(?!secret)")
REFUSED = ("x(?!secret)", "(?<!secret)$", "^(?!secret)a|b", "(?=x)", "(")


@pytest.mark.parametrize("pattern", LOOK_AROUND)
def test_look_ahead_at_the_start_comes_in_as_it_is(pattern):
    stored = StoredUsers()
    plan = run(stored, {**FILE, "permissions": [{**NAMES, "write": pattern}]})
    assert (plan.left_out, stored.names["bob"]["/"].write) == ([], pattern)


@pytest.mark.parametrize("pattern", REFUSED)
def test_expression_that_is_not_understood_is_listed_and_matches_nothing(pattern):
    stored = StoredUsers()
    run(stored, {**FILE, "permissions": [{**NAMES, "write": ".*", "read": ".*"}]})
    wrong = {"permissions": [{**NAMES, "write": pattern}], "topic_permissions": [{**KEYS, "read": pattern}]}
    for _ in range(2):
        plan = run(stored, wrong)
        assert [one.partition(": ")[0] for one in plan.left_out] == [
            "permissions of user 'bob' in vhost '/'",
            "topic permissions of user 'bob' at exchange 'amq.topic' in vhost '/'",
        ]
        assert all(pattern in one and "nothing matches in its place" in one for one in plan.left_out)
    names, keys = stored.names["bob"]["/"], stored.keys["bob"]["/", "amq.topic"]
    for row in (names.write, keys.read):
        assert not any(compile_regex(row).search(text) for text in ("", "a", "ax", "x", "secret", "secretx", "b"))
    assert (names.read, keys.write) == (".*", "^{username}")  # the others of the row hold
