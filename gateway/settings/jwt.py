"""Settings of JSON Web Tokens that clients may give in place of a password."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, Field, model_validator

from gateway.address import check_url, format_address, is_loopback
from gateway.settings.secret import Secret

Algorithm = Literal[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


def _check_set_url(url: str) -> str:
    if not url:
        return url
    parts = urlsplit(check_url(url))
    host = parts.hostname or ""
    if parts.scheme != "https" and host != "localhost" and not is_loopback(format_address(host, 0)):
        raise ValueError("must be https://, or on this machine: a stranger that changes it on its way signs tokens")
    return url


SetUrl = Annotated[str, AfterValidator(_check_set_url)]
Claim = Annotated[str, Field(min_length=1)]


class JwtSettings(BaseModel, frozen=True, extra="forbid"):
    """JSON Web Tokens in place of a password; more in security.md."""

    algorithms: tuple[Algorithm, ...] = ()  # algorithms that tokens may be signed with; empty: no tokens
    secret: Secret = ""  # secret for HS256, HS384 and HS512; it is in the file in plain text
    secret_env: str = ""  # the environment variable that holds the secret
    public_key: Path | None = None  # PEM file with the public key for all other algorithms
    jwks: Path | None = None  # file with a JSON Web Key Set; a token names its key
    jwks_url: SetUrl = ""  # URL of such a set, https:// except on this machine; fetched again while the gateway runs
    jwks_refresh_s: Annotated[int, Field(ge=10, le=86_400)] = 3_600  # longest time until the set is fetched again
    # PEM file of the authorities for that server's certificate; none: those that this machine trusts
    jwks_ca: Path | None = None
    audience: str = ""  # audience that a token must have; empty: it must have none
    issuer: str = ""  # issuer that a token must have; empty: any
    user_claim: Claim = "sub"  # the claim that names the user
    groups_claim: str = ""  # the claim that names the groups of `auth.rules`: a list, or text with spaces between
    tags_claim: str = ""  # claim with the tags of the user at the admin API, as `auth.users.NAME.tags`
    # difference allowed between the clocks of the issuer and of this machine
    leeway_s: Annotated[int, Field(ge=0, le=300)] = 0
    endless: bool = False  # accept tokens without an end (`exp`)

    @model_validator(mode="after")
    def _check_keys(self) -> JwtSettings:
        has_key = bool(self.secret or self.secret_env or self.public_key or self.jwks or self.jwks_url)
        if self.secret and self.secret_env:
            raise ValueError("secret and secret_env are two ways to say one thing: give one")
        if self.algorithms and not has_key:
            raise ValueError("needs a key beside algorithms: secret, secret_env, public_key, jwks or jwks_url")
        if has_key and not self.algorithms:
            raise ValueError("needs algorithms beside the key, such as RS256")
        return self
