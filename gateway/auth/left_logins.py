"""How a client came in, written down beside what is done in its name when it and the gateway are gone.

Users of the gateway are found again by their names. Of a token, or a user that a back end knows, the issuer or back end
is written down, and what it said of the user, so that after a restart the very same is asked again.

Source: docs/decisions/0075-wills-remember-how-their-client-came-in.md.
"""

from __future__ import annotations

import json

from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import Credentials, Identity, LoginAnswer, Refusal
from gateway.auth.tokens import Token
from gateway.settings.rules import RuleSettings


def pack_login(identity: Identity) -> bytes:
    """Return what is written down of a login: nothing of a user of the gateway, and of an anonymous client."""
    token = identity.token
    if token is None:
        return b""
    said = {
        "mark": token.mark.hex(),
        "ends_at_ms": token.ends_at_ms,
        "groups": token.groups,
        "rules": [rule.model_dump(exclude_defaults=True) for rule in token.rules],
    }
    return json.dumps(said).encode()


def find_left(authenticator: Authenticator, who: Credentials, login: bytes) -> LoginAnswer:
    """Return the login of a client that is gone as it counts now.

    It is refused as wrong where the back end or issuer that vouched for the client does so no more, and as busy where
    that is not known yet: the keys of tokens are still to come.

    Args:
        authenticator: Knows what counts.
        who: The client's user and identifier, and where it was.
        login: What `pack_login` gave of it.
    """
    user = who.user or ""
    if not login:
        may = authenticator.find_rights(who.protocol, user, who.client, who.host)
        return Refusal.WRONG if may is None else Identity(user, may)
    try:
        token = _parse(authenticator, user, login)
    except (ValueError, KeyError):  # rules that this version does not know: what they would say is not guessed
        return Refusal.WRONG
    if authenticator.is_right(token):
        return authenticator.let_in_by(token, who)
    return Refusal.BUSY if authenticator.tokens.is_waiting else Refusal.WRONG


def _parse(authenticator: Authenticator, user: str, login: bytes) -> Token:
    said = json.loads(login)
    mark = bytes.fromhex(said["mark"])
    rules = tuple(map(RuleSettings.model_validate, said["rules"]))
    backend = authenticator.backends.find(mark)
    topics = None if backend is None else backend.topic_judge
    return Token(user, tuple(said["groups"]), (), said["ends_at_ms"], mark, rules, topics)
