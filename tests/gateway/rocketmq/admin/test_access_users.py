from __future__ import annotations

import json

import pytest

from lmq.remoting.signature import AccessKeys
from tests.support.rocketmq_access import (
    CREATE_USER,
    DELETE_USER,
    GET_USER,
    LIST_USERS,
    ROOT,
    UPDATE_USER,
    ask_as,
    open_site,
    pull_as,
)

ANN = AccessKeys("ann", "12345678")


@pytest.fixture
def site(tmp_path, engine_maker):
    site = open_site(tmp_path / "d", engine_maker)
    yield site
    site.close()


@pytest.fixture
def peer(site):
    return site.connect()


def test_a_user_that_is_made_comes_in_by_its_password_and_may_do_nothing_yet(site, peer):
    assert ask_as(ROOT, peer, CREATE_USER, {"password": ANN.secret_key, "userType": "Normal"}, username="ann").code == 0
    assert pull_as(ANN, site.connect(), "T").code in {16, 17}
    told = json.loads(bytes(ask_as(ROOT, peer, GET_USER, username="ann").body))
    assert told == {"username": "ann", "userType": "Normal", "userStatus": "enable"}  # and no password
    assert site.authenticator.find_secret("ann") == ANN.secret_key.encode()


def test_another_password_counts_at_once_and_a_deleted_user_comes_in_no_more(site, peer):
    ask_as(ROOT, peer, CREATE_USER, {"password": ANN.secret_key}, username="ann")
    assert ask_as(ROOT, peer, UPDATE_USER, {"password": "another one"}, username="ann").code == 0
    assert ask_as(ANN, site.connect(), GET_USER, username="ann").code != 0
    assert ask_as(ROOT, peer, UPDATE_USER, {"userType": "Super"}, username="ann").code == 0
    assert ask_as(AccessKeys("ann", "another one"), site.connect(), GET_USER, username="ann").code == 0
    assert ask_as(ROOT, peer, DELETE_USER, username="ann").code == 0
    assert ask_as(ROOT, peer, DELETE_USER, username="ann").code == 0  # as at official brokers
    assert bytes(ask_as(ROOT, peer, GET_USER, username="ann").body) == b""


def test_a_disabled_user_comes_in_no_more_and_keeps_all_it_had_until_it_is_let_in_again(site, peer):
    ask_as(ROOT, peer, CREATE_USER, {"password": ANN.secret_key, "userType": "Super"}, username="ann")
    inside = site.connect()
    assert ask_as(ANN, inside, GET_USER, username="ann").code == 0
    identity = inside.handler.identity
    assert ask_as(ROOT, peer, UPDATE_USER, {"userStatus": "disable"}, username="ann").code == 0
    assert ask_as(ANN, site.connect(), GET_USER, username="ann").code == 16
    assert not site.authenticator.may_stay("rocketmq", identity)
    assert site.authenticator.find_rights("mqtt", "ann") is None
    assert site.authenticator.find_member("ann", "127.0.0.1") is None
    assert site.authenticator.find_tags("ann") == ()
    told = json.loads(bytes(ask_as(ROOT, peer, GET_USER, username="ann").body))
    assert told == {"username": "ann", "userType": "Super", "userStatus": "disable"}
    ask_as(ROOT, peer, UPDATE_USER, {"password": "another one"}, username="ann")  # does not let it in again
    assert ask_as(AccessKeys("ann", "another one"), site.connect(), GET_USER, username="ann").code == 16
    assert ask_as(ROOT, peer, UPDATE_USER, {"userStatus": "enable"}, username="ann").code == 0
    assert ask_as(AccessKeys("ann", "another one"), site.connect(), GET_USER, username="ann").code == 0


def test_a_user_may_be_made_disabled_and_stays_so_when_the_folder_is_opened_again(site, peer):
    said = {"password": ANN.secret_key, "userStatus": "disable"}
    assert ask_as(ROOT, peer, CREATE_USER, said, username="ann").code == 0
    site.authenticator.keep_users(site.broker.table("auth_users"))
    assert ask_as(ANN, site.connect(), GET_USER, username="ann").code == 16
    assert site.authenticator.stored.users["ann"].is_disabled


def test_users_are_listed_by_a_part_of_their_name(peer):
    assert bytes(ask_as(ROOT, peer, LIST_USERS).body) == b""
    for name in ("cy", "ann", "anton"):
        ask_as(ROOT, peer, CREATE_USER, {"password": "12345678", "userType": "Super"}, username=name)
    found = json.loads(bytes(ask_as(ROOT, peer, LIST_USERS, filter="an").body))
    assert [(user["username"], user["userType"]) for user in found] == [("ann", "Super"), ("anton", "Super")]


@pytest.mark.parametrize(
    ("code", "said", "name", "wanted", "remark"),
    [
        (CREATE_USER, {"password": "12345678"}, "there", 16, "The user is existed"),
        (UPDATE_USER, {"password": "12345678"}, "nobody", 16, "The user is not exist"),
        (CREATE_USER, {"password": "12345678"}, "root", 16, "is of the settings"),
        (CREATE_USER, {"password": "12345678"}, "", 29, "blank"),
        (CREATE_USER, {"password": "12345678"}, "$bridge/x", 29, "reserved"),
        (CREATE_USER, {"password": "12345"}, "new", 29, "a password has 6"),
        (CREATE_USER, {}, "new", 29, "a password has 6"),
        (CREATE_USER, {"password": "12345678", "userType": "King"}, "new", 29, "userType"),
        (CREATE_USER, {"password": "12345678", "userStatus": "away"}, "new", 29, "userStatus"),
        (CREATE_USER, [], "new", 29, "the body"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(site, peer, code, said, name, wanted, remark):
    ask_as(ROOT, peer, CREATE_USER, {"password": "12345678"}, username="there")
    before = dict(site.authenticator.stored.users)
    answer = ask_as(ROOT, peer, code, said, username=name)
    assert (answer.code, remark in answer.remark) == (wanted, True), answer.remark
    assert dict(site.authenticator.stored.users) == before


def test_users_are_for_administrators_alone(site, peer):
    ask_as(ROOT, peer, CREATE_USER, {"password": ANN.secret_key}, username="ann")
    for code in range(3001, 3011):
        answer = ask_as(ANN, site.connect(), code, {}, username="ann", subject="User:ann")
        assert answer.code == 16
    assert "ann" in site.authenticator.stored.users
