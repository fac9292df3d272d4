"""Enhanced authentication at the door: at CONNECT, and again later."""

from __future__ import annotations

import pytest

from gateway.auth.users import hash_for_scram
from gateway.mqtt.properties import OF_AUTH, decode_properties
from tests.support import mqtt
from tests.support.logins import quick_hash
from tests.support.mqtt import connect_5, publish_5, subscribe_5
from tests.support.mqtt_5 import P, connack_of, encoded, enter, got
from tests.support.scram import ScramClient
from tests.support.tokens import SECRET, make

KEPT = hash_for_scram("secret", 4_096)
USERS = {
    "alice": {"password_hash": KEPT},
    "bob": {"password_hash": hash_for_scram("secret", 4_096)},
    "old": {"password_hash": quick_hash("secret")},
}
METHOD = b"SCRAM-SHA-256"


def auth(code, *items, method=METHOD):
    return mqtt.packet(0xF0, bytes((code,)) + encoded((P.AUTH_METHOD, method), *items))


def hello(*items, client_id=b"c", method=METHOD, **options):
    return connect_5(client_id, properties=encoded((P.AUTH_METHOD, method), *items), **options)


def auth_of(data):
    """Return code and authentication data of an AUTH of the gateway."""
    assert data[0] == 0xF0
    found, end = decode_properties(data, 3, OF_AUTH)
    assert end == len(data)
    assert found.texts[P.AUTH_METHOD] == METHOD
    return data[2], found.texts[P.AUTH_DATA]


@pytest.fixture
def world(make_world):
    return make_world(auth={"users": USERS})


def prove(peer, client):
    """Go through a proof at CONNECT up to the client's last word; return what came."""
    (asked,) = peer.send(hello((P.AUTH_DATA, client.first))).take()
    code, data = auth_of(asked)
    assert code == 0x18
    return peer.send(auth(0x18, (P.AUTH_DATA, client.final(data)))).take()


def test_client_proves_who_it_is_and_the_gateway_too(world):  # MQTT-4.12.0-2 to MQTT-4.12.0-5
    client = ScramClient()
    peer = world.dial()
    (welcome,) = prove(peer, client)
    present, code, found = connack_of(welcome)
    assert (present, code, found.texts[P.AUTH_METHOD]) == (0, 0, METHOD)
    assert client.is_server(found.texts[P.AUTH_DATA])
    peer.send(subscribe_5(1, (b"t", 0)))
    peer.take()
    peer.send(publish_5(b"t", b"x"))
    assert [one.body for one in got(peer)] == [b"x"]
    assert peer.handler.identity.user == "alice"


def test_client_may_be_asked_for_its_first_message(world):
    client = ScramClient()
    peer = world.dial().send(hello())
    assert auth_of(*peer.take()) == (0x18, b"")
    _, data = auth_of(*peer.send(auth(0x18, (P.AUTH_DATA, client.first))).take())
    (welcome,) = peer.send(auth(0x18, (P.AUTH_DATA, client.final(data)))).take()
    assert connack_of(welcome)[1] == 0


@pytest.mark.parametrize(
    "client", [ScramClient("alice", "wrong"), ScramClient("nobody"), ScramClient("old"), ScramClient("alice", "")]
)
def test_whoever_does_not_prove_it_is_refused_all_in_the_same_way(world, client, caplog):
    peer = world.dial()
    (answer,) = prove(peer, client)
    assert connack_of(answer)[:2] == (0, 0x87)
    assert peer.is_closed
    assert world.counts.refused == {"not_authorized": 1}
    (said,) = caplog.messages
    which = "no such user in the settings or the data folder" if client.user == "nobody" else "wrong password or secret"
    assert said.endswith(f"user={client.user} reason={which}")


def test_unknown_names_are_asked_for_the_same_each_time(world):
    asked = []
    for name in ("nobody", "nobody", "alice", "old"):
        _, data = auth_of(*world.dial().send(hello((P.AUTH_DATA, ScramClient(name).first))).take())
        asked.append(data.split(b",")[1:])
    assert asked[0] == asked[1] != asked[2]
    assert {rounds for _, rounds in asked} == {b"i=4096"}
    assert len({len(salt) for salt, _ in asked}) == 1


@pytest.mark.parametrize("method", [b"SCRAM-SHA-1", b"scram-sha-256", b"", b"GS2-KRB5"])
def test_unknown_method_is_refused(world, method):  # MQTT-4.12.0-1
    peer = world.dial().send(hello(method=method))
    assert connack_of(*peer.take())[1] == 0x8C
    assert peer.is_closed


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (publish_5(b"t", b"x"), 0x82),
        (subscribe_5(1, (b"t", 0)), 0x82),
        (mqtt.PINGREQ, 0x82),
        (connect_5(b"c"), 0x82),
        (auth(0x19), 0x82),
        (auth(0x00), 0x82),
        (auth(0x18, method=b"OTHER"), 0x82),
        (auth(0x18, (P.AUTH_DATA, b"rubbish")), 0x87),
        (auth(0x18), 0x87),
        (mqtt.packet(0xF0, b"\x18\x7f"), 0x81),
        (b"\xf0\xff\xff\x7f", 0x95),
        (mqtt.packet(0xF1, b""), 0x81),
    ],
)
def test_what_may_not_come_before_the_proof_ends_the_connection_with_its_reason(world, data, code):  # MQTT-3.1.2-30
    peer = world.dial().send(hello((P.AUTH_DATA, ScramClient().first)))
    peer.take()
    (answer,) = peer.send(data).take()
    assert connack_of(answer)[:2] == (0, code)
    assert peer.is_closed


def test_client_that_takes_its_leave_is_not_answered(world):
    peer = world.dial().send(hello((P.AUTH_DATA, ScramClient().first)))
    peer.take()
    assert peer.send(mqtt.packet(0xE0, b"")).take() == []
    assert peer.is_closed


def test_client_that_never_goes_on_is_closed_in_time(world):
    peer = world.dial().send(hello((P.AUTH_DATA, ScramClient().first)))
    peer.take()
    world.now_ms += world.settings.connect_timeout_ms + 1
    peer.handler.on_timer(world.now_ms)
    assert connack_of(*peer.take())[1] == 0x89
    assert peer.is_closed


def test_no_more_than_a_small_packet_is_held_before_the_proof(world):
    peer = world.dial().send(hello((P.AUTH_DATA, ScramClient().first)))
    peer.take()
    peer.send(b"\xf0\x80\x3e" + b"x" * 4_000)
    assert not peer.is_closed
    other = world.dial().send(hello((P.AUTH_DATA, ScramClient().first)))
    other.take()
    other.send(b"\xf0\x80\x80\x01")
    assert connack_of(*other.take())[1] == 0x95


def test_nothing_more_is_read_while_a_proof_is_checked(world):
    world.checks.holds = True
    client = ScramClient()
    peer = world.dial().send(hello((P.AUTH_DATA, client.first)))
    _, data = auth_of(*peer.take())
    peer.send(auth(0x18, (P.AUTH_DATA, client.final(data))))
    assert peer.take() == []
    peer.send(mqtt.PINGREQ)
    assert not peer.transport.is_reading
    world.checks.finish_all()
    world.turn()
    welcome, pong = peer.take()
    assert connack_of(welcome)[1] == 0
    assert pong == mqtt.PINGRESP
    assert peer.transport.is_reading


def test_client_that_goes_while_its_proof_is_checked_is_let_go_of(world):
    world.checks.holds = True
    client = ScramClient()
    peer = world.dial().send(hello((P.AUTH_DATA, client.first)))
    _, data = auth_of(*peer.take())
    peer.send(auth(0x18, (P.AUTH_DATA, client.final(data)))).vanish()
    world.checks.finish_all()
    world.turn()
    assert peer.take() == []


def test_address_that_is_wrong_again_and_again_waits(world):
    for _ in range(6):
        prove(world.dial(), ScramClient("alice", "wrong"))
    assert prove(world.dial(), ScramClient()) == []
    world.checks.pass_time(1_000)
    world.turn()
    assert connack_of(*world.peers[-1].take())[1] == 0


def test_certificate_and_proof_name_the_same_user(world):
    for name, code in (("alice", 0), ("bob", 0x87)):
        peer = world.dial()
        peer.transport.peer_name = name
        (answer,) = prove(peer, ScramClient())
        assert connack_of(answer)[1] == code


def test_password_of_such_a_user_is_taken_in_the_plain_way_too(world):
    for password, code in ((b"secret", 0), (b"wrong", 4)):
        peer = world.connect(b"p", user=b"alice", password=password)
        assert peer.take()[0][3] == code


# Again


def test_client_proves_again_who_it_is_while_messages_go_on(world):  # MQTT-4.12.1-1
    peer = world.dial()
    prove(peer, ScramClient())
    peer.send(subscribe_5(1, (b"t", 0)))
    peer.take()
    for _ in range(2):
        client = ScramClient()
        peer.send(auth(0x19, (P.AUTH_DATA, client.first)), publish_5(b"t", b"x"))
        packets = peer.take()
        code, data = auth_of(next(one for one in packets if one[0] == 0xF0))
        assert code == 0x18
        assert len(packets) == 2
        (answer,) = peer.send(auth(0x18, (P.AUTH_DATA, client.final(data)))).take()
        code, data = auth_of(answer)
        assert code == 0
        assert client.is_server(data)
    assert not peer.is_closed


@pytest.mark.parametrize("client", [ScramClient("alice", "wrong"), ScramClient("bob"), ScramClient("nobody")])
def test_client_that_cannot_prove_it_again_is_let_in_no_more(world, client):  # MQTT-4.12.1-2
    peer = world.dial()
    prove(peer, ScramClient())
    _, data = auth_of(*peer.send(auth(0x19, (P.AUTH_DATA, client.first))).take())
    (answer,) = peer.send(auth(0x18, (P.AUTH_DATA, client.final(data)))).take()
    assert (answer[0], answer[2]) == (0xE0, 0x87)
    assert peer.is_closed


@pytest.mark.parametrize("data", [auth(0x18), auth(0x00), auth(0x19, method=b"OTHER")])
def test_proof_again_begins_with_its_reason_and_method(world, data):
    peer = world.dial()
    prove(peer, ScramClient())
    (answer,) = peer.send(data).take()
    assert (answer[0], answer[2]) == (0xE0, 0x82)


def test_client_without_a_method_may_send_no_auth(world):  # MQTT-4.12.0-6, MQTT-4.12.0-7
    peer = enter(world, b"c")
    (answer,) = peer.send(auth(0x19, (P.AUTH_DATA, ScramClient().first))).take()
    assert (answer[0], answer[2]) == (0xE0, 0x82)


# Tokens


BEARER = b"OAUTHBEARER"
TOKENS = {"algorithms": ["HS256"], "secret": SECRET, "groups_claim": "groups"}


@pytest.fixture
def tokens(make_world):
    return make_world(auth={"users": USERS, "jwt": TOKENS, "mqtt_anonymous": False})


def bearer(world, seconds=60, **claims):
    token = make({"sub": "ann", "exp": world.now_ms // 1_000 + seconds, **claims})
    return P.AUTH_DATA, b"n,,\x01auth=Bearer " + token + b"\x01\x01"


def test_client_comes_in_by_a_token_and_puts_its_end_off_by_another(tokens):
    peer = tokens.dial()
    (welcome,) = peer.send(hello(bearer(tokens, 10), method=BEARER)).take()
    assert connack_of(welcome)[1] == 0
    assert connack_of(welcome)[2].texts[P.AUTH_METHOD] == BEARER
    assert peer.handler.identity.user == "ann"
    (answer,) = peer.send(auth(0x19, bearer(tokens, 1_000), method=BEARER)).take()
    assert answer[2] == 0
    tokens.now_ms += 20_000
    assert tokens.authenticator.may_stay("mqtt", peer.handler.identity)


@pytest.mark.parametrize("is_renewed", [True, False])
def test_will_that_a_kill_leaves_counts_as_long_as_the_newest_token(tokens, is_renewed):
    watch = connect_5(
        b"w", clean=False, properties=encoded((P.SESSION_EXPIRY, 600), (P.AUTH_METHOD, BEARER), bearer(tokens))
    )
    tokens.dial().send(watch, subscribe_5(1, (b"w/#", 1)))
    peer = tokens.dial()
    peer.send(hello(bearer(tokens, 10), method=BEARER, will=(b"w/t", b"gone", 1, False, b"\0"))).take()
    if is_renewed:
        peer.send(auth(0x19, bearer(tokens, 1_000), method=BEARER)).take()
    tokens.close()
    tokens.now_ms += 20_000
    tokens.open()
    assert [one.body for one in got(tokens.dial().send(watch))] == ([b"gone"] if is_renewed else [])


def test_client_may_be_asked_for_its_token(tokens):
    peer = tokens.dial()
    (asked,) = peer.send(hello(method=BEARER)).take()
    assert asked[0] == 0xF0
    (welcome,) = peer.send(auth(0x18, bearer(tokens), method=BEARER)).take()
    assert connack_of(welcome)[1] == 0


def test_a_wrong_token_is_refused(tokens, caplog):
    peer = tokens.dial()
    (asked,) = peer.send(hello(bearer(tokens, -10), method=BEARER)).take()
    assert asked[0] == 0xF0
    assert b'{"status":"invalid_token"}' in asked  # RFC 7628, 3.2.2
    (answer,) = peer.send(auth(0x18, bearer(tokens), method=BEARER)).take()
    assert connack_of(answer)[1] == 0x87
    assert peer.is_closed
    assert caplog.messages[-1].endswith("reason=the token is refused: it has expired (exp)")
    (answer,) = tokens.dial().send(hello((P.AUTH_DATA, b"rubbish"), method=BEARER)).take()
    assert connack_of(answer)[1] == 0x87


@pytest.mark.parametrize(
    ("claims", "seconds", "why"),
    [
        ({"sub": "bob"}, 60, "wrong user name or password"),
        ({"nbf": 2_000_000_000}, 60, "the token is refused: it is not valid yet (nbf)"),
        ({}, -10, "the token is refused: it has expired (exp)"),
    ],
)
def test_a_token_of_another_user_or_a_wrong_one_ends_the_connection_which_is_told_why(
    tokens, caplog, claims, seconds, why
):
    peer = tokens.dial().send(hello(bearer(tokens), method=BEARER))
    peer.take()
    (asked,) = peer.send(auth(0x19, bearer(tokens, seconds, **claims), method=BEARER)).take()
    assert b'{"status":"invalid_token"}' in asked
    (answer,) = peer.send(auth(0x18, (P.AUTH_DATA, b"\x01"), method=BEARER)).take()
    assert answer[0] == 0xE0
    assert answer[2] == 0x87
    assert answer.endswith(f"not proved who it is: {why}".encode())
    assert f"not proved who it is: {why} conn=" in caplog.text
    assert peer.is_closed


def test_tokens_are_no_method_where_none_are_taken(world):
    peer = world.dial().send(hello(bearer(world), method=BEARER))
    assert connack_of(*peer.take())[1] == 0x8C
