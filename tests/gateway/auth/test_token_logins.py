from __future__ import annotations

import logging
import sys

import pytest

from gateway.auth import token_logins
from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import Credentials, Identity, Refusal
from gateway.auth.token_logins import ENTRY_BYTES, TokenMemory, read_keys
from gateway.auth.tokens import TOKEN_BYTES_MAX, Token
from gateway.runtime.loop import Clock, CoarseTimer
from gateway.settings.jwt import JwtSettings
from gateway.settings.models import AuthSettings, SettingsError
from tests.support.logins import HandClock, HandWork, quick_hash
from tests.support.stores import MemoryTable
from tests.support.tokens import SECRET, key_for, make, part, public_pem

FAR = "192.0.2.7:40000"
JWT = {"algorithms": ["HS256"], "secret": SECRET, "groups_claim": "groups", "tags_claim": "tags"}


class Timer:
    def __init__(self):
        self.watched = 0

    def watch_soon(self, timed):
        self.watched += 1


class Site:
    """An authenticator that takes tokens; its clock is `now_s`."""

    def __init__(self, **settings):
        self.now_s = 1_000
        self.work = HandWork()
        said = AuthSettings.model_validate({"mqtt_anonymous": False, "jwt": JWT, **settings})
        clock = HandClock(lambda: self.now_s * 1_000)
        self.auth = Authenticator(said, {}, clock, self.work)
        self.auth.keep_users(MemoryTable())
        self.auth.tokens.timer = self.timer = Timer()

    def ask(self, token, user="anybody", protocol="mqtt", client="c"):
        """Return the list that the answer comes into."""
        answers = []
        who = Credentials(protocol, user, token, FAR, client=client)
        self.auth.begin(who, lambda answer, _: answers.append(answer))
        return answers

    def answer(self, *asked, **more):
        (answer,) = self.ask(*asked, **more)
        return answer

    def use(self, **jwt):
        self.auth.tokens.use(read_keys(JwtSettings.model_validate({**JWT, **jwt}), {}))


def _token(**claims):
    return make({"sub": "ann", "exp": 2_000, **claims})


def test_user_is_the_one_of_the_token_whatever_name_is_given():
    site = Site()
    for name in (None, "", "anybody", "ann"):
        identity = site.answer(_token(), user=name)
        assert isinstance(identity, Identity)
        assert identity.user == "ann"
    for protocol in ("mqtt", "amqp"):
        assert site.answer(_token(), protocol=protocol).user == "ann"


def test_token_that_is_wrong_lets_nobody_in_as_anonymous_either():
    site = Site(mqtt_anonymous=True)
    for token in (_token(exp=1_000), _token(nbf=1_001), _token(sub=7), _token(sub=""), _token()[:-3] + b"AAA"):
        assert site.answer(token) is Refusal.WRONG
    assert site.answer(part({"alg": "none"}) + b"." + part({"sub": "ann", "exp": 2_000}) + b".") is Refusal.WRONG
    assert site.answer(_token(more="x" * TOKEN_BYTES_MAX)) is Refusal.WRONG
    assert site.answer(b"other").user == ""


def test_tokens_are_passwords_where_none_are_taken():
    token = _token()
    site = Site(jwt={}, users={"bob": {"password_hash": quick_hash(token.decode())}})
    assert site.answer(token, user="ann") is Refusal.WRONG
    assert site.answer(token, user="bob").user == "bob"
    assert not site.auth.tokens.is_on


def test_name_of_a_user_is_not_for_tokens():
    site = Site(users={"ann": {"password_hash": quick_hash("secret")}})
    assert site.answer(_token()) is Refusal.WRONG
    assert site.answer(b"secret", user="ann").user == "ann"
    for name in ("guest", "$bridge/x"):
        assert site.answer(_token(sub=name)) is Refusal.WRONG
    site.auth.stored.put_user("bob", "", ())
    assert site.answer(_token(sub="bob")) is Refusal.WRONG


def test_user_of_a_token_is_turned_out_when_the_name_becomes_a_users():
    site = Site()
    identity = site.answer(_token())
    site.auth.stored.put_user("bob", "", ())
    assert site.auth.may_stay("mqtt", identity)
    site.auth.stored.put_user("ann", "", ())
    assert not site.auth.may_stay("mqtt", identity)


def test_rights_come_from_the_rules_for_the_user_and_the_groups_of_the_token():
    rules = [
        {"permit": "allow", "groups": ["plant"], "topics": ["plant/#"]},
        {"permit": "allow", "users": ["ann"], "topics": ["of/%u/#"]},
        {"permit": "allow", "clients": ["c"], "topics": ["client/%c"]},
    ]
    site = Site(default="deny", rules=rules)
    may = site.answer(_token(groups=["plant", "other"])).may
    assert may.may_publish(b"plant/1")
    assert may.may_subscribe(b"plant/#")
    assert may.may_publish(b"of/ann/1")
    assert may.may_publish(b"client/c")
    assert not may.may_publish(b"of/bob/1")
    assert not may.may_publish(b"other")
    without = site.answer(_token()).may
    assert not without.may_publish(b"plant/1")
    assert without.may_publish(b"of/ann/1")
    assert not site.answer(_token(sub="bob", groups="other")).may.may_publish(b"plant/1")


def test_tags_of_the_token_are_those_at_the_admin_api():
    site = Site()
    identity = site.answer(_token(tags=["administrator"]))
    assert site.auth.find_tags(identity.user, identity.token) == ("administrator",)
    assert site.auth.find_tags("ann") == ()
    plain = site.answer(_token())
    assert site.auth.find_tags(plain.user, plain.token) == ()


def test_right_token_is_checked_once_until_it_ends():
    site = Site()
    for _ in range(3):
        assert site.answer(_token()).user == "ann"
    assert site.work.count == 1
    site.now_s = 2_000
    assert site.answer(_token()) is Refusal.WRONG
    assert site.work.count == 2


def test_token_that_is_not_valid_yet_is_right_later():
    site = Site()
    token = _token(nbf=1_001)
    assert site.answer(token) is Refusal.WRONG
    site.now_s = 1_001
    assert site.answer(token).user == "ann"


def test_wrong_tokens_delay_those_of_the_same_user_from_there_and_no_others():
    site = Site()
    wrong = make({"sub": "ann", "exp": 2_000}, key=SECRET[::-1])
    for _ in range(6):
        assert site.answer(wrong) is Refusal.WRONG
    waiting = site.ask(_token())
    assert waiting == []
    assert site.answer(_token(sub="bob")).user == "bob"
    site.work.pass_time(50)
    assert waiting[0].user == "ann"


def test_login_under_way_goes_by_the_keys_that_are_read_meanwhile(caplog):
    site = Site()
    site.work.holds = True
    with caplog.at_level(logging.INFO):
        answers = site.ask(_token())
        site.use(secret=SECRET[::-1])
        site.work.finish_all()
        assert answers == [Refusal.WRONG]
        expiring = site.ask(make({"sub": "ann", "exp": 1_001}, key=SECRET[::-1]))
        site.now_s = 1_001
        site.work.finish_all()
    assert expiring == [Refusal.WRONG]


def test_reason_is_in_the_log_and_the_token_is_not(caplog):
    token = _token(exp=1_000)
    with caplog.at_level(logging.INFO):
        Site().answer(token)
    assert "token refused host=192.0.2.7 reason=it has expired (exp)" in caplog.text
    assert token.decode() not in caplog.text


def test_why_the_newest_refused_tokens_were_refused_is_known(monkeypatch):
    monkeypatch.setattr(token_logins, "WHYS_MAX", 2)
    site = Site()
    first, second, third = (_token(exp=1_000 - number) for number in range(3))
    for token in (first, second, third, _token(exp=1_000, pad="x" * TOKEN_BYTES_MAX)):
        site.answer(token)
    told = [site.auth.tokens.why_refused(token) for token in (first, second, third, None, _token())]
    assert told == ["", "", "the token is refused: it has expired (exp)", "", ""]


def test_why_a_token_was_refused_is_forgotten_once_it_is_right():
    site, token = Site(), _token(nbf=1_000)
    site.now_s = 999
    site.answer(token)
    assert site.auth.tokens.why_refused(token)
    site.now_s = 1_000
    site.answer(token)
    assert not site.auth.tokens.why_refused(token)


def test_cancelled_login_is_not_answered():
    site = Site()
    site.work.holds = True
    answers = []
    attempt = site.auth.begin(Credentials("mqtt", None, _token(), FAR), lambda answer, _: answers.append(answer))
    site.auth.cancel(attempt)
    site.work.finish_all()
    assert answers == []


def test_who_came_in_stays_while_the_token_is_right():
    site = Site()
    identity = site.answer(_token())
    assert site.auth.may_stay("mqtt", identity)
    site.use(leeway_s=5)
    assert site.auth.may_stay("mqtt", identity)
    site.use(audience="lmq")
    assert not site.auth.may_stay("mqtt", identity)
    site.use()
    assert site.auth.may_stay("mqtt", identity)
    site.now_s = 2_000
    assert not site.auth.may_stay("mqtt", identity)
    site.now_s = 1_000
    site.auth.tokens.use(None)
    assert not site.auth.may_stay("mqtt", identity)
    assert site.answer(_token()) is Refusal.WRONG


def test_who_may_read_less_by_the_rules_does_not_stay():
    site = Site()
    identity = site.answer(_token(groups=["plant"]))
    other = site.answer(_token(sub="bob"))
    said = AuthSettings.model_validate(
        {"mqtt_anonymous": False, "jwt": JWT, "rules": [{"permit": "deny", "groups": ["plant"], "topics": ["x"]}]}
    )
    site.auth.reload(said, {})
    assert not site.auth.may_stay("mqtt", identity)
    assert site.auth.may_stay("mqtt", other)


def test_the_first_end_of_tokens_in_use_is_told_and_then_the_next():
    site = Site()
    tokens = site.auth.tokens
    told = []
    site.auth.on_changed = lambda: told.append([site.auth.may_stay("mqtt", identity) for identity in identities])
    assert tokens.next_deadline_ms() is None
    identities = [site.answer(_token(exp=exp, sub=f"u{exp}")) for exp in (1_500, 1_200, 1_900)]
    assert site.timer.watched == 2
    assert tokens.next_deadline_ms() == 1_200_000
    site.now_s = 1_200
    tokens.on_deadline(1_200_000)
    assert told == [[True, False, True]]
    assert tokens.next_deadline_ms() == 1_500_000


class SetClock(Clock):
    """A clock on a machine whose own was set back by 1,000 s before anything was asked."""

    def __init__(self):
        super().__init__()
        self.machine_s = self.steady_s = 2_000
        self.now_ms()
        self.machine_s -= 1_000

    def read_ns(self):
        return self.machine_s * 1_000_000_000

    def read_steady_ns(self):
        return self.steady_s * 1_000_000_000

    def pass_s(self, count):
        self.machine_s += count
        self.steady_s += count


def test_tokens_go_by_the_machines_clock_while_the_gateways_is_ahead():
    site = Site()
    clock = SetClock()
    site.auth.clock = site.auth.tokens._clock = site.auth.backends._clock = clock
    told = []
    site.auth.on_changed = lambda: told.append(site.auth.may_stay("mqtt", identity))
    assert clock.now_ms() == 2_000_000
    assert site.answer(_token(exp=1_000)) is Refusal.WRONG
    assert site.answer(_token(nbf=1_001)) is Refusal.WRONG
    identity = site.answer(_token(exp=1_100))
    assert site.auth.may_stay("mqtt", identity)
    timer = CoarseTimer(clock)
    timer.watch(site.auth.tokens)
    clock.pass_s(99)
    timer.run_due(clock.now_ms())
    assert told == []
    clock.pass_s(1)
    timer.run_due(clock.now_ms() + 250)  # in the slot of that moment
    assert told == [False]
    assert site.answer(_token(exp=1_100)) is Refusal.WRONG


def test_a_token_ends_soon_that_ended_while_the_machines_clock_was_wrong():
    site = Site()
    clock = SetClock()
    site.auth.clock = site.auth.tokens._clock = site.auth.backends._clock = clock
    told = []
    site.auth.on_changed = lambda: told.append(site.auth.may_stay("mqtt", identity))
    identity = site.answer(_token(exp=1_500))
    timer = CoarseTimer(clock)
    timer.watch(site.auth.tokens)
    clock.machine_s += 1_000  # it is right again
    for _ in range(61):
        clock.pass_s(1)
        timer.run_due(clock.now_ms())
    assert told == [False]


def test_name_that_a_token_can_bring_can_come_back():
    site = Site(users={"bob": {"password_hash": quick_hash("x")}})
    assert site.auth.may_come("mqtt", "ann")
    assert site.auth.may_come("mqtt", "bob")
    assert not site.auth.may_come("mqtt", "$bridge/x")
    assert not site.auth.may_come("mqtt", "")
    assert not Site(jwt={}).auth.may_come("mqtt", "ann")


def test_keys_are_read_from_the_settings_and_the_environment(tmp_path):
    assert read_keys(JwtSettings(), {}) is None
    named = JwtSettings(algorithms=("HS256",), secret_env="X")
    assert len(read_keys(named, {"X": SECRET}).marks) == 1
    for environment in ({}, {"X": ""}):
        with pytest.raises(SettingsError, match="X is not set"):
            read_keys(named, environment)
    path = tmp_path / "key.pem"
    path.write_bytes(public_pem(key_for("ES256")))
    assert len(read_keys(JwtSettings(algorithms=("ES256",), public_key=path), {}).marks) == 1


def test_missing_libraries_are_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "jwt", None)
    monkeypatch.delitem(sys.modules, "gateway.auth.token_keys", raising=False)
    with pytest.raises(SettingsError, match=r"needs the extra jwt: pip install 'lmq-gateway\[jwt\]'"):
        read_keys(JwtSettings.model_validate(JWT), {})
    assert read_keys(JwtSettings(), {}) is None


def test_memory_of_tokens_is_bounded_and_the_one_asked_for_longest_ago_goes():
    memory = TokenMemory(2 * (ENTRY_BYTES + 10))
    token = Token("ann", (), (), 1, b"")
    for digest in (b"1", b"2"):
        memory.add(digest, token, 10)
    memory.add(b"2", token, 10)
    assert memory.find(b"1") is token
    memory.add(b"3", token, 10)
    assert memory.find(b"2") is None
    assert memory.find(b"1") is memory.find(b"3") is token
    assert (memory.hits, memory.misses) == (3, 1)
    memory.add(b"4", token, 2 * ENTRY_BYTES)
    assert memory.find(b"4") is None
