"""What a CONNECT says of its client: the client identifier, the credentials; and how a refusal is answered."""

from __future__ import annotations

import secrets

from gateway.auth.credentials import Credentials, Refusal
from gateway.mqtt.packets import LEVEL_5, OLD_LEVEL, Connect
from gateway.mqtt.reason_codes import ConnectCode, ReasonCode
from gateway.settings.way_names import Ways

PROTOCOL = "mqtt"
CODES = {
    Refusal.NAMELESS: ConnectCode.NOT_AUTHORIZED,
    Refusal.WRONG: ConnectCode.BAD_CREDENTIALS,
    Refusal.BUSY: ConnectCode.SERVER_UNAVAILABLE,
    Refusal.PENALTY: ConnectCode.NOT_AUTHORIZED,
    Refusal.DOWN: ConnectCode.SERVER_UNAVAILABLE,
    Refusal.QUOTA: ConnectCode.SERVER_UNAVAILABLE,
    Refusal.STRANGER: ConnectCode.NOT_AUTHORIZED,
}
REASONS = {Refusal.PENALTY: ReasonCode.BANNED}  # of MQTT 5, where it has a nearer one


def check_client_id(connect: Connect, bytes_max: int, certified: str = "") -> tuple[ConnectCode, bytes]:
    """Return whether the client identifier is taken, and the one that the client has from now on.

    Where a certificate names the identifier (`certified`), the client gives that one, or none.
    """
    client_id = connect.client_id
    own = certified.encode()
    if own and client_id not in {b"", own}:
        return ConnectCode.IDENTIFIER_REJECTED, client_id
    if not client_id:
        if connect.level != LEVEL_5 and (not connect.is_clean or connect.level == OLD_LEVEL):  # MQTT-3.1.3-8
            return ConnectCode.IDENTIFIER_REJECTED, client_id
        return ConnectCode.ACCEPTED, own or b"lmq-" + secrets.token_hex(8).encode()
    if len(client_id) > bytes_max:
        return ConnectCode.IDENTIFIER_REJECTED, client_id
    return ConnectCode.ACCEPTED, client_id


def credentials_of(
    connect: Connect, client_id: bytes, peer: str, certified: str = "", certificate: bytes = b"", *, ways: Ways = None
) -> Credentials:
    """Return what a client says of itself, and what its certificate says of it."""
    user = None if connect.user is None else connect.user.decode()
    return Credentials(PROTOCOL, user, connect.password, peer, certified, None, client_id.decode(), certificate, ways)
