"""The keys that tokens are checked with. A key is for the algorithms of its kind alone, whatever a token says.

The libraries are those of the extra `jwt`: import this module where tokens are taken only.

Source: RFC 7515, 7517, 7518; RFC 8725, section 3.1 (a public key is never a secret of HS256).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from gateway.auth.tokens import Token, TokenError, UnknownKeyError, make_token, read_claims, read_head
from gateway.settings.jwt import JwtSettings
from gateway.settings.models import SettingsError

FILE_BYTES_MAX = 1024 * 1024  # far more than KEYS_MAX keys take
KEYS_MAX = 64  # of a set; a token that names none is tried with each that fits
RSA_BITS_MIN = 2_048  # RFC 7518, section 3.3
SECRET_BYTES_MIN = {"HS256": 32, "HS384": 48, "HS512": 64}  # RFC 7518, section 3.2: as the hash at least
OF_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
OF_CURVE = {"secp256r1": ("ES256",), "secp384r1": ("ES384",), "secp521r1": ("ES512",)}
KINDS = ("RSA", "EC", "OKP", "oct")
CURVES = ("P-256", "P-384", "P-521", "Ed25519", "Ed448")  # of a set; keys of others are left alone
OPTIONS: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_sub": False, "verify_jti": False}

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | Ed448PublicKey


class Key(NamedTuple):
    """One key. `name` is what a token calls it by, empty where it is for tokens of any name."""

    name: str
    algorithms: tuple[str, ...]
    material: PublicKey | bytes
    mark: bytes


class TokenKeys:
    """All keys of some settings, as their files are now.

    Args:
        settings: What tokens have to be.
        secret: That of the settings or the environment, empty for none.
        fetched: The set that was had from `jwks_url`, empty where there is none yet.

    Raises:
        SettingsError: A file cannot be read or holds no key, or a key is for none of the algorithms.
    """

    def __init__(self, settings: JwtSettings, secret: bytes, fetched: bytes = b"") -> None:
        self.user_claim = settings.user_claim
        self._settings = settings
        self._secret = secret
        self._keys: list[Key] = []
        if secret:
            self._add_secret(secret)
        if settings.public_key is not None:
            self._add_public(settings.public_key)
        if settings.jwks is not None:
            called = f"auth.jwt.jwks: {settings.jwks}"
            self._add_set(_read(settings.jwks, called), called)
        if fetched:
            self._add_set(fetched, f"auth.jwt.jwks_url: {settings.jwks_url}")
        self.marks = frozenset(key.mark for key in self._keys)

    def with_set(self, fetched: bytes) -> TokenKeys:
        """Return the same keys with another set from `jwks_url`.

        Raises:
            SettingsError: It has none that can be used.
        """
        return TokenKeys(self._settings, self._secret, fetched)

    def check(self, token: bytes, now_ms: int) -> Token:
        """Return what a token says; slow.

        Raises:
            TokenError: It is not right.
        """
        head = read_head(token)
        algorithm, name = head.get("alg"), head.get("kid", "")
        if algorithm not in self._settings.algorithms:
            raise TokenError("its algorithm is not taken here")
        keys = [key for key in self._keys if algorithm in key.algorithms and _fits(key.name, name)]
        if not keys:
            raise UnknownKeyError("no key matches it")
        read_claims(token)
        for key in keys:
            claims = self._find_claims(token, algorithm, key)
            if claims is not None:
                return make_token(claims, self._settings, key.mark, now_ms)
        raise TokenError("its signature is wrong")

    def _find_claims(self, token: bytes, algorithm: str, key: Key) -> dict[str, Any] | None:
        """Return the claims of a token that a key proves, None where it does not.

        Raises:
            TokenError: It is not well formed, or of another issuer, or for another audience.
        """
        said = self._settings
        try:
            return jwt.decode(
                token,
                key.material,
                algorithms=[algorithm],
                audience=said.audience or None,
                issuer=said.issuer or None,
                options=OPTIONS,
            )
        except jwt.InvalidSignatureError:
            return None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise TokenError(f"it is refused: {error}") from error

    # Keys

    def _add_secret(self, secret: bytes) -> None:
        if b"-----BEGIN" in secret:
            raise SettingsError("auth.jwt.secret is a key in PEM: name its file in auth.jwt.public_key")
        for algorithm, bytes_min in SECRET_BYTES_MIN.items():
            if algorithm in self._settings.algorithms and len(secret) < bytes_min:
                raise SettingsError(f"auth.jwt.secret is too short: {algorithm} needs {bytes_min} bytes or more")
        self._add("", tuple(SECRET_BYTES_MIN), secret, "auth.jwt.secret")

    def _add_public(self, path: Path) -> None:
        called = f"auth.jwt.public_key: {path}"
        raw = _read(path, called)
        if b"PRIVATE KEY" in raw:
            raise SettingsError(
                f"{called} holds a private key: give the public one, and keep the private one where tokens are made"
            )
        try:
            key = load_pem_public_key(raw)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise SettingsError(f"{called} holds no public key in PEM") from error
        self._add("", *_find_fit(key, called), called)

    def _add_set(self, raw: bytes, called: str) -> None:
        try:
            said = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise SettingsError(f"{called} is not JSON") from error
        keys = said.get("keys") if isinstance(said, dict) else None
        if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
            raise SettingsError(f"{called} is not a JSON Web Key Set: it has no list of keys")
        if len(keys) > KEYS_MAX:
            raise SettingsError(f"{called} has more than {KEYS_MAX} keys")
        before = len(self._keys)
        for number, key in enumerate(keys):
            self._add_of_set(key, f"{called}, keys[{number}]")
        if len(self._keys) == before:
            raise SettingsError(f"{called} has no key for one of auth.jwt.algorithms")

    def _add_of_set(self, said: dict[str, Any], called: str) -> None:
        """Add a key of a set, where it is for one of our algorithms; sets have keys for other things, too."""
        kind, name = said.get("kty"), said.get("kid", "")
        is_ours = kind in KINDS and (said.get("crv") is None or said["crv"] in CURVES)
        if said.get("use", "sig") != "sig" or not is_ours:
            return
        if not isinstance(name, str):
            raise SettingsError(f"{called}: its kid is not text")
        if "d" in said:
            raise SettingsError(
                f"{called} is a private key: give the public one, and keep the private one where tokens are made"
            )
        try:
            fit, material = _read_key(said, called)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError, UnsupportedAlgorithm) as error:
            raise SettingsError(f"{called} is not a key: {error}") from error
        if "alg" in said:
            fit = tuple(algorithm for algorithm in fit if algorithm == said["alg"])
        if set(fit) & set(self._settings.algorithms):
            self._add(name, fit, material, called)

    def _add(self, name: str, fit: tuple[str, ...], material: PublicKey | bytes, called: str) -> None:
        algorithms = tuple(algorithm for algorithm in fit if algorithm in self._settings.algorithms)
        if not algorithms:
            raise SettingsError(f"{called} is for none of auth.jwt.algorithms; it could be for {', '.join(fit)}")
        said = self._settings
        what = [said.audience, said.issuer, said.user_claim, said.groups_claim, said.tags_claim, *algorithms]
        mark = hashlib.sha256(json.dumps(what).encode() + _bytes_of(material)).digest()
        self._keys.append(Key(name, algorithms, material, mark))


def _fits(name: str, asked: object) -> bool:
    """Return whether a key is the one that a token names; a token and a key without a name fit all."""
    return not name or asked in ("", name)  # a token may name what cannot be in a set


def _read(path: Path, called: str) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise SettingsError(f"{called} cannot be read: {error.strerror}") from error
    if len(raw) > FILE_BYTES_MAX:
        raise SettingsError(f"{called} is larger than {FILE_BYTES_MAX} bytes")
    return raw


def _read_key(said: dict[str, Any], called: str) -> tuple[tuple[str, ...], PublicKey | bytes]:
    """Return what a key of a set is fit for, and the key."""
    kind = said["kty"]
    if kind == "oct":
        secret = jwt.algorithms.HMACAlgorithm.from_jwk(said)
        return tuple(name for name, bytes_min in SECRET_BYTES_MIN.items() if len(secret) >= bytes_min), secret
    if kind == "RSA":
        return _find_fit(RSAAlgorithm.from_jwk(said), called)
    return _find_fit(ECAlgorithm.from_jwk(said) if kind == "EC" else OKPAlgorithm.from_jwk(said), called)


def _find_fit(key: object, called: str) -> tuple[tuple[str, ...], PublicKey]:
    """Return what a public key is for, and the key.

    Raises:
        SettingsError: For nothing that tokens are signed with.
    """
    if isinstance(key, RSAPublicKey):
        if key.key_size < RSA_BITS_MIN:
            raise SettingsError(f"{called} has {key.key_size} bits: {RSA_BITS_MIN} are the least")
        return OF_RSA, key
    if isinstance(key, EllipticCurvePublicKey) and key.curve.name in OF_CURVE:
        return OF_CURVE[key.curve.name], key
    if isinstance(key, Ed25519PublicKey | Ed448PublicKey):
        return ("EdDSA",), key
    raise SettingsError(f"{called} holds a key of a kind that no token is signed with here")


def _bytes_of(material: PublicKey | bytes) -> bytes:
    if isinstance(material, bytes):
        return material
    return material.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
