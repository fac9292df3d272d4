"""What commands ask the gateway through: its admin API, with one answer for each question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from gateway.commands.options import GIVEN
from gateway.commands.refusing import EXIT_DENIED, EXIT_MISSING, EXIT_NOT_NOW, EXIT_UNREACHABLE, EXIT_WRONG_USE, refuse

GUEST = "guest"  # as RabbitMQ's tools come in, from the gateway's own machine only
TIMEOUT_S = 30  # chosen: what is asked of very many things may take seconds
CODES = {401: EXIT_DENIED, 403: EXIT_DENIED, 404: EXIT_MISSING, 409: EXIT_NOT_NOW}
NOT_IN, SERVER_ERRORS = 401, 500
CERTIFICATE_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED
WRONG_NAMES = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH and _IP_ADDRESS_MISMATCH
PLAIN_MAX = 200  # characters of a plain text that is told; chosen: two lines of a terminal


class AdminClient:
    """Asks one gateway. A refusal, or a gateway that does not answer, ends the command with one line.

    Args:
        admin: HOST:PORT of the admin API, or its URL.
        user: The caller. Without one, or with a token on the command line, it is the token's user; with neither,
            questions are asked without a name, or as guest where it has to be a user on this machine, and changes are
            made as guest.
        password: The user's.
        timeout_s: How long to wait for an answer.
        is_quiet: The line is not printed.
    """

    def __init__(
        self,
        admin: str,
        user: str | None = None,
        password: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        is_quiet: bool = False,
    ) -> None:
        admin = GIVEN.url or admin
        base = admin if "://" in admin else f"http://{admin}"
        fault = _fault_of(admin, base)
        if fault and is_quiet:
            raise typer.Exit(EXIT_WRONG_USE)
        if fault:
            refuse(fault)
        self._admin = admin
        self._base = base.rstrip("/")
        self._user = user
        self._timeout_s = timeout_s
        self._is_quiet = is_quiet
        self._password = password or ""
        self._token = GIVEN.token if user is None or GIVEN.says_token else None

    def get(self, path: str, question: Mapping[str, object] | None = None, *, as_member: bool = False) -> Any:  # noqa: ANN401 - JSON
        """Return the answer to a question; what is None in it is not asked, a list asks for each of its values.

        `as_member`: the answer shows messages, so the caller has to log in.
        """
        from urllib.parse import urlencode

        asked = {name: value for name, value in (question or {}).items() if value is not None}
        user = GUEST if as_member and self._user is None else self._user
        return self._send("GET", f"{path}?{urlencode(asked, doseq=True)}" if asked else path, None, user)

    def ask(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Return the answer to a question that only administrators are answered."""
        return self.send("GET", path)

    def send(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """Have something changed, and return the answer; None where there is none."""
        return self._send(method, path, body, GUEST if self._user is None else self._user)

    def _send(self, method: str, path: str, body: object, user: str | None) -> Any:  # noqa: ANN401 - JSON
        import json
        import ssl
        import urllib.error
        import urllib.request
        from base64 import b64encode
        from http.client import BadStatusLine, HTTPException, RemoteDisconnected

        url = f"{self._base}{path}"
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        elif user is not None:
            password = GUEST if self._user is None else self._password
            headers["Authorization"] = "Basic " + b64encode(f"{user}:{password}".encode()).decode()
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - http and https only
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:  # noqa: S310 - as above
                text = answer.read()
                return json.loads(text) if text else None
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            said = f"cannot ask the gateway at {self._admin}: {reason}"
            code = EXIT_UNREACHABLE
            if isinstance(reason, ssl.SSLCertVerificationError):
                said += _certificate_hint(reason.verify_code)
            if isinstance(error, BadStatusLine) and not isinstance(error, RemoteDisconnected):
                said = f"that is no admin API at {self._admin}: {_speaks(str(error))}"
            if isinstance(error, urllib.error.HTTPError) and self._may_be_guest(error.code, user):
                return self._send(method, path, body, GUEST)
            if isinstance(error, urllib.error.HTTPError):
                body = error.read()
                said = (_refusal(body) or f"{said}{_plain(body)}") + self._login_hint(error.code)
                code = _code_of(error.code)
            if self._is_quiet:
                raise typer.Exit(code) from error
            refuse(said, error, code=code)

    def _login_hint(self, status: int) -> str:
        """Return what to do where a question is refused to somebody who gave no name."""
        is_nameless = self._user is None and not self._token
        return ": give --user and --password, or a token in LMQ_TOKEN" if status == NOT_IN and is_nameless else ""

    def _may_be_guest(self, status: int, user: str | None) -> bool:
        """Return whether a question that is not answered without a name may be guest's: to this machine."""
        from gateway.address import leads_here

        return status == NOT_IN and user is None and not self._token and leads_here(self._base)


def _fault_of(admin: str, base: str) -> str:
    """Return why nobody can be asked at an address, empty where somebody can: it needs a host, and a port if any."""
    from urllib.parse import urlsplit

    if not base.startswith(("http://", "https://")):
        return f"{admin} is not an http address"
    try:
        parts = urlsplit(base)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        return f"{admin!r} is no address: {error}"
    return "" if is_whole else f"{admin!r} is no address: give HOST:PORT or a URL"


def quote(name: str) -> str:
    """Return a name as a part of a path: one of a queue or virtual host may have slashes in it; none may be empty."""
    from urllib.parse import quote as quote_part

    if not name:
        refuse("a name is empty")

    return quote_part(name, safe="")


def _speaks(line: str) -> str:
    """Return what speaks there, by what it answers a question of HTTP."""
    return "it speaks AMQP" if line.startswith("AMQP") else "it does not speak HTTP"


def _certificate_hint(code: int) -> str:
    """Return what to do where the certificate of the gateway is refused with one of OpenSSL's codes."""
    import os
    from pathlib import Path

    if code == CERTIFICATE_EXPIRED:
        return "; put a new one in its place, the gateway reads it within ten seconds"
    if code in WRONG_NAMES:
        return ""
    named = os.environ.get("SSL_CERT_FILE")
    if named and not Path(named).is_file():
        return f"; SSL_CERT_FILE in the environment names {named}, and there is no such file"
    return "; SSL_CERT_FILE in the environment names a file with an authority of your own"


def _plain(body: bytes) -> str:
    """Return the reason in an answer of plain text, such as that of a door that wants TLS."""
    text = body.decode("utf-8", "replace").strip()
    return f": {text}" if text.isprintable() and not text.startswith("<") and 0 < len(text) <= PLAIN_MAX else ""


def _code_of(status: int) -> int:
    return CODES.get(status, EXIT_NOT_NOW if status >= SERVER_ERRORS else EXIT_WRONG_USE)


def _refusal(body: bytes) -> str:
    """Return the reason in an API's answer that refuses the question, empty where it gives none in words."""
    import json

    try:
        told = json.loads(body)
        detail = told["reason"] if "reason" in told else told["detail"]
    except (ValueError, LookupError, TypeError):
        return ""
    return " ".join(detail.split()) if isinstance(detail, str) else ""  # RabbitMQ's words come in several lines
