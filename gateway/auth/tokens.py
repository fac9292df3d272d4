"""JSON Web Tokens as texts: which passwords are tokens, and what the claims of one say of its user.

Nothing here knows a signature; what is read of a token whose signature was not checked proves nothing.

Source: RFC 7519, section 4; RFC 7515, section 3.1.
"""

from __future__ import annotations

import base64
import json
import math
import re
from typing import Any, NamedTuple, get_args

from gateway.auth.topic_rights import TopicJudge
from gateway.settings.jwt import JwtSettings
from gateway.settings.models import UserTag
from gateway.settings.rules import RuleSettings

TOKEN_BYTES_MAX = 8_192  # as many as a password may have, in whose place it is sent
NAME_BYTES_MAX = 255  # of a user, as those of the data folder, and of a group
MOMENT_MAX_S = 1 << 42  # some 139,000 years; in milliseconds it still is a number of the timer
NEVER_MS = 1000 * MOMENT_MAX_S  # later than any end that a token can name
TAGS: tuple[UserTag, ...] = get_args(UserTag)
_SHAPE = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*")


class TokenError(Exception):
    """A token does not let anybody in; the text says why, for the log."""


class UnknownKeyError(TokenError):
    """A token names a key that is not there, perhaps not yet."""


class Token(NamedTuple):
    """What a right token says. `mark` is of the key and the settings by which it is right.

    `rules` are those that a back end gives its user; they decide what no rule of the settings is for.
    """

    user: str
    groups: tuple[str, ...]
    tags: tuple[UserTag, ...]
    ends_at_ms: int  # NEVER_MS where it has no end
    mark: bytes
    rules: tuple[RuleSettings, ...] = ()
    topics: TopicJudge | None = None  # what is asked about each topic, where a back end wants that


def is_token(password: bytes) -> bool:
    """Return whether a password has the shape of a token: three parts, the first one an object that names `alg`.

    One that has the outer shape and is too long to be looked into counts as one.
    """
    if _SHAPE.fullmatch(password) is None:
        return False
    if len(password) > TOKEN_BYTES_MAX:
        return True
    try:
        return isinstance(read_head(password).get("alg"), str)
    except TokenError:
        return False


def read_head(token: bytes) -> dict[str, Any]:
    """Return the first part of a token.

    Raises:
        TokenError: It is no JSON object.
    """
    return _read_object(token.partition(b".")[0])


def read_claims(token: bytes) -> dict[str, Any]:
    """Return the claims of a token.

    Raises:
        TokenError: They are no JSON object.
    """
    return _read_object(token.split(b".")[1])


def make_token(claims: dict[str, Any], settings: JwtSettings, mark: bytes, now_ms: int) -> Token:
    """Return what the claims say, of a token whose signature, audience and issuer are right.

    Raises:
        TokenError: They name no user, or the token is not valid at `now_ms`, by the clock of the machine.
    """
    user = claims.get(settings.user_claim)
    if not isinstance(user, str) or not is_name(user):
        raise TokenError("its user claim is missing, or no name")
    ends_at_s, begins_at_s = _find_moment(claims, "exp"), _find_moment(claims, "nbf")
    ends_at_ms = NEVER_MS if ends_at_s is None else 1000 * math.ceil(ends_at_s + settings.leeway_s)
    if ends_at_s is None and not settings.endless:
        raise TokenError("it has no end (exp)")
    if ends_at_ms <= now_ms:
        raise TokenError("it has expired (exp)")
    if begins_at_s is not None and now_ms < 1000 * (begins_at_s - settings.leeway_s):
        raise TokenError("it is not valid yet (nbf)")
    groups = _find_names(claims, settings.groups_claim)
    tags = _find_names(claims, settings.tags_claim)
    return Token(user, groups, tuple(tag for tag in TAGS if tag in tags), ends_at_ms, mark)


def _read_object(part: bytes) -> dict[str, Any]:
    try:
        found = json.loads(base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4)))
    except (ValueError, RecursionError) as error:
        raise TokenError("it is not well formed") from error
    if not isinstance(found, dict):
        raise TokenError("it is not well formed")
    return found


def is_name(said: object) -> bool:
    """Return whether a claim is a text that can stand in logs, in properties of a message, and in rules."""
    return isinstance(said, str) and said.isprintable() and 0 < len(said.encode()) <= NAME_BYTES_MAX


def _find_moment(claims: dict[str, Any], name: str) -> float | None:
    said = claims.get(name)
    if said is None and name not in claims:
        return None
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said < MOMENT_MAX_S - 300:
        raise TokenError(f"it has no moment in {name}")
    return said


def _find_names(claims: dict[str, Any], claim: str) -> tuple[str, ...]:
    """Return the texts of a claim; none where it is not there or not asked for."""
    if not claim or claim not in claims:
        return ()
    said = claims[claim]
    names = said.split() if isinstance(said, str) else said
    if not isinstance(names, list) or not all(map(is_name, names)):
        raise TokenError(f"its claim {claim} is not a list of names")
    return tuple(names)
