from __future__ import annotations

import pytest

from gateway.auth import users
from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import OWN_PEER, PASSWORD_BYTES_MAX, Credentials, Identity, Refusal
from gateway.auth.password_checks import REST_MS_MAX
from gateway.auth.permissions import ALL
from gateway.auth.users import hash_for_scram
from gateway.settings.models import AuthSettings, SettingsError
from tests.support.logins import HandClock, HandWork, quick_hash
from tests.support.scram import ScramClient
from tests.support.stores import MemoryTable

HERE = "127.0.0.1:40000"
FAR = "192.0.2.7:40000"
CHEAP = "scrypt$16$1$1$c2FsdA==$"


class Site:
    """An authenticator whose checks run at once, or when the test says so."""

    def __init__(self, environment=None, **settings):
        self.work = HandWork()
        clock = HandClock(lambda: 1_000_000)
        self.auth = Authenticator(AuthSettings.model_validate(settings), environment or {}, clock, self.work)

    def ask(self, protocol, user, password, peer):
        """Return the list that the answer comes into."""
        answers = []
        self.auth.begin(Credentials(protocol, user, password, peer), lambda answer, _: answers.append(answer))
        return answers

    def answer(self, *credentials):
        (answer,) = self.ask(*credentials)
        return answer

    def user(self, *credentials):
        """Return the name of the user that comes in, None where none does."""
        answer = self.answer(*credentials)
        return answer.user if isinstance(answer, Identity) else None


@pytest.fixture(scope="module")
def kept():
    return quick_hash("secret")


def test_anonymous_clients_come_in_where_the_settings_say_so():
    site = Site()
    assert site.user("mqtt", None, None, FAR) == ""
    assert site.user("rocketmq", None, None, FAR) == ""
    assert site.answer("amqp", None, None, HERE) is Refusal.NAMELESS
    closed = Site(mqtt_anonymous=False, rocketmq_anonymous=False)
    assert closed.answer("mqtt", None, None, HERE) is Refusal.NAMELESS
    assert closed.answer("rocketmq", None, None, HERE) is Refusal.NAMELESS


def test_any_name_comes_in_as_anonymous_where_there_are_no_users():
    site = Site()
    assert site.user("mqtt", "bob", b"anything", FAR) == ""
    assert site.user("mqtt", "guest", b"guest", FAR) == ""
    assert site.user("rocketmq", "bob", None, FAR) == ""
    assert site.work.count == 0


def test_name_that_is_not_known_is_wrong_once_there_are_users_and_after_the_last_is_deleted(kept):
    table = MemoryTable()
    site = Site()
    site.auth.keep_secret(table)
    site.auth.keep_users(MemoryTable())
    site.auth.stored.put_user("ann", kept, ())
    assert site.answer("mqtt", "bob", b"anything", FAR) is Refusal.WRONG
    assert site.answer("rocketmq", "bob", None, FAR) is Refusal.WRONG
    site.auth.stored.delete_user("ann")
    assert site.answer("mqtt", "ann", b"anything", FAR) is Refusal.WRONG
    assert site.user("mqtt", None, None, FAR) == ""
    again = Site()
    again.auth.keep_secret(table)
    assert again.answer("mqtt", "ann", b"anything", FAR) is Refusal.WRONG


def test_known_name_needs_its_password_where_anonymous_clients_come_in(kept):
    site = Site(users={"alice": {"password_hash": kept}})
    assert site.answer("mqtt", "alice", b"anything", FAR) is Refusal.WRONG
    assert site.answer("amqp", "bob", b"anything", FAR) is Refusal.WRONG
    closed = Site(mqtt_anonymous=False)
    assert closed.answer("mqtt", "bob", b"anything", FAR) is Refusal.WRONG


def test_part_of_the_gateway_comes_in_by_its_name_from_inside_only():
    site = Site(mqtt_anonymous=False)
    site.auth.let_in("$bridge/x")

    def come(certified, peer):
        answers = []
        site.auth.begin(Credentials("mqtt", None, None, peer, certified), lambda answer, _: answers.append(answer))
        return answers[0]

    inside = come("$bridge/x", OWN_PEER)
    assert inside.user == "$bridge/x"
    assert site.auth.may_stay("mqtt", inside)
    assert site.auth.find_rights("mqtt", "$bridge/x") is ALL
    assert come("$bridge/x", FAR) is Refusal.STRANGER
    assert come("$bridge/y", OWN_PEER) is Refusal.STRANGER


def test_guest_comes_in_by_amqp_from_this_machine_only():
    site = Site()
    assert site.user("amqp", "guest", b"guest", HERE) == "guest"
    assert site.user("amqp", "guest", b"guest", "[::1]:5") == "guest"
    assert site.answer("amqp", "guest", b"other", HERE) is Refusal.WRONG
    assert site.answer("amqp", "guest", b"guest", FAR) is Refusal.WRONG
    assert Site(amqp_guest=False).answer("amqp", "guest", b"guest", HERE) is Refusal.WRONG


def test_guest_does_not_come_in_where_a_proxy_stands_in_front(kept):
    assert Site(behind_proxy=True).answer("amqp", "guest", b"guest", HERE) is Refusal.WRONG
    named = Site(behind_proxy=True, users={"guest": {"password_hash": kept}})
    assert named.user("amqp", "guest", b"secret", HERE) == "guest"


def test_guest_of_the_settings_has_the_password_of_the_settings(kept):
    site = Site(users={"guest": {"password_hash": kept}})
    assert site.answer("amqp", "guest", b"guest", HERE) is Refusal.WRONG
    assert site.user("amqp", "guest", b"secret", FAR) == "guest"


def test_user_of_the_settings_comes_in_with_the_right_password_and_its_rights(kept):
    site = Site(users={"alice": {"password_hash": kept, "may_publish": False}})
    identity = site.answer("mqtt", "alice", b"secret", FAR)
    assert identity.user == "alice"
    assert not identity.may.may_publish(b"a")
    assert site.answer("mqtt", "alice", b"wrong", FAR) is Refusal.WRONG
    assert site.answer("mqtt", "alice", None, FAR) is Refusal.WRONG


def _reload(site, environment=None, **settings):
    other = AuthSettings.model_validate(settings)
    site.auth.reload(other, site.auth.make_users(other, environment or {}))


def test_rights_that_are_read_again_hold_for_who_is_in_already(kept):
    site = Site(users={"alice": {"password_hash": kept}})
    identity = site.answer("mqtt", "alice", b"secret", FAR)
    _reload(site, users={"alice": {"password_hash": kept, "may_publish": False, "may_configure": False}})
    assert not identity.may.may_publish(b"a")
    assert site.auth.may_stay("mqtt", identity)
    _reload(site, users={"alice": {"password_hash": kept}})
    assert identity.may.may_publish(b"a")
    assert identity.may.may_configure(b"/", b"q")
    assert site.auth.may_stay("mqtt", identity)


CHANGES = {
    "removed": {},
    "with another password": {"alice": {"password_env": "OTHER"}},
    "without the right to read": {"alice": {"password_env": "ALICE", "may_subscribe": False}},
}


@pytest.mark.parametrize("name", CHANGES)
def test_user_may_not_stay_who_could_not_come_in_and_read_as_before(name):
    environment = {"ALICE": "secret", "OTHER": "sacred"}
    site = Site(environment, users={"alice": {"password_env": "ALICE"}})
    identity = site.answer("mqtt", "alice", b"secret", FAR)
    _reload(site, environment, users={"alice": {"password_env": "ALICE", "may_publish": False}})
    assert site.auth.may_stay("mqtt", identity)  # its password is the same
    _reload(site, environment, users=CHANGES[name])
    assert not site.auth.may_stay("mqtt", identity)


def test_password_that_was_right_before_is_wrong_after_a_change():
    environment = {"ALICE": "secret", "OTHER": "sacred"}
    site = Site(environment, users={"alice": {"password_env": "ALICE"}})
    assert site.user("mqtt", "alice", b"secret", FAR) == "alice"
    _reload(site, environment, users={"alice": {"password_env": "OTHER"}})
    assert site.answer("mqtt", "alice", b"secret", FAR) is Refusal.WRONG
    assert site.user("mqtt", "alice", b"sacred", FAR) == "alice"


def test_login_that_is_under_way_ends_well_where_only_rights_change(kept):
    site = Site(users={"alice": {"password_hash": kept}})
    site.work.holds = True
    answers = site.ask("mqtt", "alice", b"secret", FAR)
    _reload(site, users={"alice": {"password_hash": kept, "may_publish": False}})
    site.work.finish_all()
    assert not answers[0].may.may_publish(b"a")


@pytest.mark.parametrize(
    ("protocol", "user", "changes"),
    [
        ("mqtt", None, {"mqtt_anonymous": False}),
        ("mqtt", "stranger", {"mqtt_anonymous": False}),
        ("rocketmq", None, {"rocketmq_anonymous": False}),
        ("amqp", "guest", {"amqp_guest": False}),
        ("amqp", "guest", {"behind_proxy": True}),
    ],
)
def test_way_in_that_is_closed_is_closed_for_who_is_in_already(protocol, user, changes):
    site = Site()
    identity = site.answer(protocol, user, b"guest", HERE)
    assert site.auth.may_stay(protocol, identity)
    _reload(site, **changes)
    assert not site.auth.may_stay(protocol, identity)
    _reload(site)
    assert site.auth.may_stay(protocol, identity)


def test_password_may_stand_in_the_environment():
    site = Site({"PASSWORD": "secret"}, users={"alice": {"password_env": "PASSWORD"}})
    assert site.user("amqp", "alice", b"secret", FAR) == "alice"


@pytest.mark.parametrize("user", [{}, {"password_env": "NOT_THERE"}, {"password_hash": "secret"}])
def test_user_without_a_password_that_can_be_checked_is_a_wrong_setting(user):
    with pytest.raises(SettingsError, match=r"auth\.users\.alice"):
        Site(users={"alice": user})


def test_user_without_a_name_is_a_wrong_setting(kept):
    with pytest.raises(SettingsError, match=r"auth\.users needs a name"):
        Site(users={"": {"password_hash": kept}})


def test_answer_waits_for_the_check_and_a_remembered_password_does_not(kept):
    site = Site(users={"alice": {"password_hash": kept}})
    site.work.holds = True
    first = site.ask("mqtt", "alice", b"secret", FAR)
    assert first == []
    site.work.finish()
    assert [one.user for one in first] == ["alice"]
    assert site.user("mqtt", "alice", b"secret", HERE) == "alice"
    assert site.work.count == 1


def test_wrong_passwords_do_not_lock_out_a_right_one_from_the_same_address(kept):
    site = Site(users={"alice": {"password_hash": kept}})
    guesses = [site.ask("mqtt", "alice", b"%d" % number, FAR) for number in range(30)]
    site.work.pass_time(REST_MS_MAX)
    right = site.ask("mqtt", "alice", b"secret", FAR)
    site.work.pass_time(REST_MS_MAX)
    assert [one.user for one in right] == ["alice"]
    assert [] in guesses  # they wait


@pytest.mark.parametrize("protocol", ["mqtt", "amqp"])
def test_name_that_is_not_known_is_checked_as_slowly_as_one_that_is(protocol, monkeypatch):
    checked = []
    monkeypatch.setattr(users, "check_password", lambda password, kept: bool(checked.append((password, kept))))
    known = {
        "alice": {"password_hash": CHEAP + "YWxpY2U="},
        "bob": {"password_hash": "pbkdf2-sha256$7$c2FsdA==$Ym9i"},
        "eve": {"password_env": "EVE"},
    }
    unbound = {"wrong_max": 0}  # as many names as are tried here
    site = Site({"EVE": "secret"}, users=known, mqtt_anonymous=False, penalty=unbound)
    for name in (*known, *(f"stranger {number}" for number in range(40)), "guest"):
        assert site.answer(protocol, name, b"wrong", FAR) is Refusal.WRONG
    costs = [kept.split("$")[:-2] for _, kept in checked]
    assert len(costs) == len(known) + 41
    assert [cost for cost in costs if cost not in costs[:3]] == []
    assert all(costs[:3].count(cost) == 1 for cost in costs[:3])
    assert {cost[0] for cost in costs[3:]} == {"scrypt", "pbkdf2-sha256"}
    again = Site({"EVE": "secret"}, users=known, mqtt_anonymous=False)
    again.answer(protocol, "stranger", b"1", FAR)
    again.answer(protocol, "stranger", b"2", FAR)
    assert checked[-1][1] == checked[-2][1]


def test_name_is_checked_slowly_also_where_there_is_no_user(monkeypatch):
    checked = []
    monkeypatch.setattr(users, "check_password", lambda password, kept: bool(checked.append(kept)))
    assert Site(mqtt_anonymous=False).answer("mqtt", "bob", b"x", FAR) is Refusal.WRONG
    assert [kept.split("$")[:4] for kept in checked] == [["scrypt", "16384", "8", "1"]]


def test_right_password_of_a_decoy_lets_nobody_in(monkeypatch):
    monkeypatch.setattr(users, "check_password", lambda _password, _kept: True)
    assert Site(mqtt_anonymous=False).answer("mqtt", "bob", b"x", FAR) is Refusal.WRONG


def test_very_long_password_is_wrong_and_not_kept(kept):
    site = Site(users={"alice": {"password_hash": kept}}, mqtt_anonymous=False)
    for name in ("alice", "bob"):
        assert site.answer("mqtt", name, b"x" * (PASSWORD_BYTES_MAX + 1), FAR) is Refusal.WRONG
    assert site.work.count == 0


def test_login_that_is_cancelled_is_not_answered(kept):
    site = Site(users={"alice": {"password_hash": kept}})
    site.work.holds = True
    answers = []
    attempt = site.auth.begin(Credentials("mqtt", "alice", b"secret", FAR), lambda answer, _: answers.append(answer))
    site.auth.cancel(attempt)
    site.work.finish_all()
    assert answers == []


def test_rights_are_known_of_those_who_may_come_in_now(kept):
    site = Site(users={"alice": {"password_hash": kept, "may_subscribe": False}})
    assert not site.auth.find_rights("mqtt", "alice").may_subscribe(b"t")
    assert site.auth.find_rights("mqtt", "").may_subscribe(b"t")
    assert site.auth.find_rights("mqtt", "bob") is None
    assert site.auth.find_rights("amqp", "") is None
    assert Site(mqtt_anonymous=False).auth.find_rights("mqtt", "") is None


@pytest.mark.parametrize(
    ("password", "may_come_in"), [("secret", True), ("other", False)], ids=["same password", "another password"]
)
def test_login_under_way_goes_by_the_settings_that_are_read_meanwhile(kept, password, may_come_in):
    site = Site(users={"alice": {"password_hash": kept}})
    site.work.holds = True
    answers = site.ask("mqtt", "alice", b"secret", FAR)
    alice = {"password_hash": quick_hash(password), "may_subscribe": False}
    settings = AuthSettings.model_validate({"users": {"alice": alice}})
    site.auth.reload(settings, site.auth.make_users(settings, {}))
    site.work.finish()
    (answer,) = answers
    if may_come_in:
        assert not answer.may.may_subscribe(b"t")
    else:
        assert answer is Refusal.WRONG


def certified(site, name, protocol="mqtt", user=None, password=None):
    answers = []
    credentials = Credentials(protocol, user, password, FAR, name)
    site.auth.begin(credentials, lambda answer, _: answers.append(answer))
    (answer,) = answers
    return answer


@pytest.mark.parametrize("protocol", ["mqtt", "amqp", "rocketmq"])
def test_a_certificate_proves_a_user_and_nothing_else_is_asked(kept, protocol):
    site = Site(users={"alice": {"password_hash": kept, "may_publish": False}})
    answer = certified(site, "alice", protocol, "bob", b"wrong")
    assert answer.user == "alice"
    assert not answer.may.may_publish(b"t")
    assert site.auth.may_stay(protocol, answer)


def test_a_certificate_of_nobody_lets_nobody_in_even_where_anonymous_clients_come_in(kept):
    site = Site(users={"alice": {"password_hash": kept}}, mqtt_anonymous=True)
    assert certified(site, "mallory") is Refusal.STRANGER
    assert certified(site, "guest", "amqp", "guest", b"guest") is Refusal.STRANGER


# SCRAM


def scram(site, user, password="secret", **change):
    """Return the user that a proof lets in, and what the user's client was asked for."""
    client, exchange = ScramClient(user, password), site.auth.begin_scram()
    asked = exchange.answer_first(client.first)
    exchange.take_final(client.final(asked))
    if change:
        settings = AuthSettings.model_validate(change)
        site.auth.reload(settings, site.auth.make_users(settings, {}))
    answers = []
    site.auth.check_scram(exchange, Credentials("mqtt", None, None, FAR), lambda answer, _: answers.append(answer))
    return answers[0], asked.split(b",")[1:]


def test_user_with_keys_for_scram_comes_in_by_a_proof_and_others_do_not(kept):
    keys = hash_for_scram("secret", 4_096)
    site = Site(users={"alice": {"password_hash": keys}, "old": {"password_hash": kept}})
    assert scram(site, "alice")[0].user == "alice"
    assert scram(site, "alice", "wrong")[0] is Refusal.WRONG
    assert scram(site, "old")[0] is Refusal.WRONG
    assert scram(site, "nobody")[0] is Refusal.WRONG
    others = hash_for_scram("secret", 4_096)
    assert scram(site, "alice", users={"alice": {"password_hash": others}})[0] is Refusal.WRONG
    assert scram(site, "alice")[0].user == "alice"
    assert scram(site, "alice", users={})[0] is Refusal.WRONG


def test_salt_of_an_unknown_name_is_the_same_after_a_restart():
    table = {}

    class Table:
        get, put = table.get, table.__setitem__

    asked = []
    for _ in range(2):
        site = Site()
        site.auth.keep_secret(Table)
        asked.append(scram(site, "nobody")[1])
    assert asked[0] == asked[1]
    assert asked[0] != scram(Site(), "nobody")[1]


# Secrets


@pytest.mark.parametrize(
    "user",
    [{"secret": "short"}, {"secret_env": "NOT_THERE"}, {"secret_env": "SHORT"}, {"secret": "", "secret_env": ""}],
)
def test_user_with_a_secret_that_is_none_is_refused(user):
    with pytest.raises(SettingsError, match="ann"):
        Site({"SHORT": "short"}, users={"ann": user})


def test_secret_may_stand_in_the_environment_and_a_password_beside_it():
    site = Site({"SECRET": "ann's own secret", "PASSWORD": "secret"}, users={"ann": {"secret_env": "SECRET"}})
    assert site.auth.find_secret("ann") == b"ann's own secret"
    assert site.auth.find_secret("bob") == b""


def test_no_password_is_right_for_a_user_that_has_a_secret_alone():
    site = Site(users={"ann": {"secret": "ann's own secret"}})
    for password in (b"", b"ann's own secret"):
        assert site.answer("mqtt", "ann", password, FAR) is Refusal.WRONG
