from __future__ import annotations

from collections import deque

import pytest

from gateway.auth.stored_users import StoredUsers
from gateway.auth.user_rows import KeyRow, NameRow
from gateway.auth.users import PasswordHashError
from tests.support.logins import quick_hash
from tests.support.stores import Rows

ROW = NameRow(".*", ".*", ".*")


def test_what_was_changed_is_there_again():
    table = Rows()
    users = StoredUsers(table)
    users.put_user("bob", quick_hash("x"), ("administrator",), "a secret")
    users.put_user("ann", "", ())
    users.set_names("/", "bob", ROW)
    users.set_keys("/", "bob", "e", KeyRow("a", "b"))
    again = StoredUsers(table)
    assert (again.users["bob"].tags, again.users["bob"].secret) == (("administrator",), b"a secret")
    assert again.names == {"bob": {"/": ROW}}
    assert again.keys == {"bob": {("/", "e"): KeyRow("a", "b")}}
    assert set(again.rows) == {"ann", "bob"}


def test_a_deleted_user_leaves_nothing():
    table = Rows()
    users = StoredUsers(table)
    users.put_user("bob", "", ())
    users.set_names("/", "bob", ROW)
    users.set_keys("/", "bob", "e", KeyRow("a", "b"))
    steps = users.delete_user("bob")
    assert users.delete_user("bob") is None
    assert (users.users, users.names, users.keys, users.rows) == ({}, {}, {}, {})
    assert len(list(steps)) == 2
    assert not table


def test_a_user_with_many_permissions_is_gone_at_once_and_its_rows_go_in_steps():
    table = Rows()
    users = StoredUsers(table)
    users.put_user("bob", "", ())
    for number in range(100):
        users.set_names(f"v{number}", "bob", ROW)
        users.set_keys(f"v{number}", "bob", "e", KeyRow("a", "b"))
    gone = []
    users.on_written_off = lambda name: gone.append((name, len(table)))
    steps = users.delete_user("bob")
    assert users.rows == {}
    for _ in range(100):  # a process that is killed in the midst has the user again, who may do less
        next(steps)
    again = StoredUsers(table)
    assert (list(again.users), again.names, len(again.keys["bob"])) == (["bob"], {}, 100)
    assert gone == []
    deque(steps, maxlen=0)
    assert not table
    assert gone == [("bob", 0)]


@pytest.mark.parametrize("change", ["user", "names", "keys"])
def test_what_has_the_name_of_a_user_that_is_being_deleted_has_nothing_of_it(change):
    table = Rows()
    users = StoredUsers(table)
    users.put_user("bob", "", ())
    for number in range(10):
        users.set_names(f"v{number}", "bob", ROW)
    steps = users.delete_user("bob")
    next(steps)
    if change == "user":
        users.put_user("bob", "", ("monitoring",))
    elif change == "names":
        users.set_names("v9", "bob", ROW)
    else:
        users.set_keys("v9", "bob", "e", KeyRow("a", "b"))
    assert len(table) == 1
    assert list(steps) == []
    again = StoredUsers(table)
    assert (set(again.users), again.names, again.keys) == (set(users.users), users.names, users.keys)


def test_permissions_in_a_virtual_host_that_is_deleted_go_in_steps_and_new_ones_stay():
    table = Rows()
    users = StoredUsers(table)
    for user in ("ann", "bob", "eve"):
        users.put_user(user, "", ())
        for vhost in ("v", "w"):
            users.set_names(vhost, user, ROW)
            users.set_keys(vhost, user, "e", KeyRow("a", "b"))
    steps = users.drop_vhost("v")
    next(steps)
    users.set_names("v", "eve", NameRow("", "", ""))
    deque(steps, maxlen=0)
    for found in (users, StoredUsers(table)):
        assert [user for user, rows in found.names.items() if "v" in rows] == ["eve"]
        assert not any(("v", "e") in rows for rows in found.keys.values())
        assert all("w" in rows for rows in found.names.values())
        assert [found.rows[user].may_enter("v") for user in ("ann", "bob", "eve")] == [False, False, True]


def test_changes_that_are_not_told_count_together():
    told = []
    users = StoredUsers()
    users.on_user_changed = told.append
    users.on_changed = lambda: told.append("all")
    users.put_user("bob", "", (), is_told=False)
    users.set_names("/", "bob", ROW, is_told=False)
    users.put_user("ann", "", (), is_told=False)
    assert (told, users.rows) == ([], {})
    changed = dict.fromkeys(("bob", "ann"))
    steps = users.tell(changed)
    next(steps)
    assert (told, list(changed)) == (["ann"], ["bob"])
    deque(steps, maxlen=0)
    assert (told, changed) == (["ann", "bob", "all"], {})
    assert users.rows["bob"].may_enter("/")
    assert list(users.tell({})) == []
    assert told[3:] == []


def test_each_change_is_told():
    told = []
    users = StoredUsers()
    users.on_changed = lambda: told.append(len(users.rows))
    users.put_user("bob", "", ())
    users.set_names("/", "bob", ROW)
    for _ in range(2):
        deque(users.drop_vhost("/"), maxlen=0)
    assert users.rows["bob"].may_enter("/") is False
    users.delete_user("bob")
    assert told == [1, 1, 1, 0]


def test_a_disabled_user_stays_so_until_it_is_enabled():
    table = Rows()
    users = StoredUsers(table)
    users.put_user("bob", quick_hash("x"), ("administrator",), "a secret")
    users.disable_user("bob", is_disabled=True)
    users.put_user("bob", quick_hash("y"), (), "a secret")
    assert StoredUsers(table).users["bob"].is_disabled
    users.disable_user("bob", is_disabled=False)
    again = StoredUsers(table).users["bob"]
    assert (again.is_disabled, again.tags, again.secret) == (False, (), b"a secret")


def test_what_is_no_hash_is_not_kept():
    users = StoredUsers(Rows())
    with pytest.raises(PasswordHashError):
        users.put_user("bob", "secret", ())
    assert users.users == {}
