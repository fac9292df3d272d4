"""What a request says of its sender, and how a refusal is answered."""

from __future__ import annotations

from functools import partial

from gateway.auth.credentials import Credentials, Identity, Refusal
from gateway.settings.way_names import Ways
from lmq.remoting.commands import Command
from lmq.remoting.response_codes import ResponseCode
from lmq.remoting.signature import ACCESS_KEY, is_signed_with

PROTOCOL = "rocketmq"
CODES = {
    Refusal.NAMELESS: ResponseCode.NO_PERMISSION,
    Refusal.WRONG: ResponseCode.NO_PERMISSION,
    Refusal.BUSY: ResponseCode.SYSTEM_BUSY,
    Refusal.PENALTY: ResponseCode.NO_PERMISSION,
    Refusal.DOWN: ResponseCode.SYSTEM_BUSY,
    Refusal.QUOTA: ResponseCode.SYSTEM_BUSY,
    Refusal.STRANGER: ResponseCode.NO_PERMISSION,
}
REMARKS = {
    Refusal.NAMELESS: "this gateway lets no client in without a name: the request has no AccessKey",
    Refusal.WRONG: "no user has this AccessKey, or the Signature is not made with its secret",
    Refusal.BUSY: "too many logins wait, try again later",
    Refusal.PENALTY: Refusal.PENALTY.value,
    Refusal.DOWN: "a back end that may know the user gives no answer, try again later",
    Refusal.QUOTA: "the user has as many connections as it may have",
    Refusal.STRANGER: "the name in the certificate is none of the users",
}


def credentials_of(request: Command, peer: str, certified: str = "", ways: Ways = None) -> Credentials:
    """Return what a request says of its sender, and what the connection's certificate says of it."""
    user = request.ext.get(ACCESS_KEY)
    signed = None if user is None else partial(is_signed_with, request)
    return Credentials(PROTOCOL, user, None, peer, certified, signed, ways=ways)


def is_proven(identity: Identity, request: Command, certified: str) -> bool:
    """Return whether the user came in by its signature, so that its other requests are to have one too."""
    return bool(identity.user) and not certified and request.ext.get(ACCESS_KEY) == identity.user
