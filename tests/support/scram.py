"""SCRAM-SHA-256 as a client makes it."""

from __future__ import annotations

import base64
import hashlib
import hmac

NONCE = "rOprNGfwEbeRWgbNEkqO"


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


class ScramClient:
    """A proof for one user; `first`, then `final` of what the server said, then `is_server` of its last word."""

    def __init__(self, user="alice", password="secret", nonce=NONCE, header="n,,"):
        self.user = user
        self.header = header
        self.bare = f"n={user},r={nonce}"
        self.nonce = nonce
        self.password = password
        self.signature = b""

    @property
    def first(self):
        return (self.header + self.bare).encode()

    def final(self, data):
        nonce, salt, rounds = (part[2:] for part in data.decode().split(","))
        assert nonce.startswith(self.nonce)
        key = hashlib.pbkdf2_hmac("sha256", self.password.encode(), base64.b64decode(salt), int(rounds))
        without_proof = f"c={base64.b64encode(self.header.encode()).decode()},r={nonce}"
        signed = f"{self.bare},{data.decode()},{without_proof}".encode()
        client_key = mac(key, b"Client Key")
        signature = mac(hashlib.sha256(client_key).digest(), signed)
        self.signature = mac(mac(key, b"Server Key"), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def is_server(self, data):
        return data == b"v=" + base64.b64encode(self.signature)
