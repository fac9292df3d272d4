from __future__ import annotations

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
    assert users.delete_user("bob")
    assert not users.delete_user("bob")
    assert not table
    assert users.rows == {}


def test_each_change_is_told():
    told = []
    users = StoredUsers()
    users.on_changed = lambda: told.append(len(users.rows))
    users.put_user("bob", "", ())
    users.set_names("/", "bob", ROW)
    users.drop_vhost("/")
    users.drop_vhost("/")
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
