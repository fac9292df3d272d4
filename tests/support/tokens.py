"""JSON Web Tokens, and keys that they are signed with."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

SECRET = "0123456789abcdef" * 4  # long enough for HS512
ALGORITHMS = (
    *("HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
_CURVES = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}


@functools.cache
def rsa_key(bits=2048):
    return rsa.generate_private_key(65_537, bits)


@functools.cache
def key_for(algorithm):
    """Return what signs with an algorithm: a private key, or the secret."""
    if algorithm.startswith("HS"):
        return SECRET
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(_CURVES[algorithm]()) if algorithm in _CURVES else rsa_key()


def public_pem(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def private_pem(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_jwk(algorithm, **more):
    """Return the public key of an algorithm, or the secret, as one of a JSON Web Key Set."""
    key = key_for(algorithm)
    kind = jwt.get_algorithm_by_name(algorithm)
    made = kind.to_jwk(key if isinstance(key, str) else key.public_key(), as_dict=True)
    made.pop("key_ops", None)
    return {**made, **more}


def make(claims, algorithm="HS256", *, key=None, **head):
    """Return a signed token."""
    return jwt.encode(claims, key or key_for(algorithm), algorithm, headers=head).encode()


def part(said):
    """Return one part of a token; bytes as they are, else as JSON."""
    raw = said if isinstance(said, bytes) else json.dumps(said).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def sign_by_hand(head, claims, secret):
    """Return a token by HS256 that a library would not make."""
    text = part(head) + b"." + part(claims)
    return text + b"." + part(hmac.new(secret, text, hashlib.sha256).digest())
