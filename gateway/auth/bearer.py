"""OAUTHBEARER: a client sends a token, and perhaps the name that it wants to be.

Source: RFC 7628, 3.1 and 3.2.2.
"""

from __future__ import annotations

METHOD = "OAUTHBEARER"
MESSAGE_BYTES_MAX = 16_384  # a token of the longest kind that is taken, and what else a client may say
SEPARATOR = b"\x01"
SCHEME = b"bearer "
COMPLAINT = b'{"status":"invalid_token"}'  # the client answers it, with anything, and is refused then


class BearerError(Exception):
    """A message of a client that is none."""


def read_bearer(data: bytes) -> tuple[str, bytes]:
    """Return the user that a client wants to be, empty where it does not say, and its token.

    Raises:
        BearerError: The message is malformed, or has no token.
    """
    if len(data) > MESSAGE_BYTES_MAX:
        raise BearerError("a message is too long")
    head, *pairs = data.split(SEPARATOR)
    binding, _, named = head.partition(b",")
    wanted, comma, rest = named.partition(b",")
    if binding not in {b"n", b"y"} or not comma or rest or pairs[-2:] != [b"", b""]:
        raise BearerError("a message has another form")
    token = b""
    for pair in pairs[:-2]:
        key, is_pair, value = pair.partition(b"=")
        if not is_pair:
            raise BearerError("a message has another form")
        if key == b"auth" and value[: len(SCHEME)].lower() == SCHEME:
            token = value[len(SCHEME) :].strip(b" ")
    if not token:
        raise BearerError("a message has no token")
    return _read_wanted(wanted), token


def _read_wanted(wanted: bytes) -> str:
    """Return the name in `a=NAME`; `=2C` is a comma in it, `=3D` an equals sign."""
    if not wanted:
        return ""
    if not wanted.startswith(b"a="):
        raise BearerError("a message has another form")
    try:
        return wanted[2:].decode().replace("=2C", ",").replace("=3D", "=")
    except UnicodeDecodeError as error:
        raise BearerError("the name is not text") from error
