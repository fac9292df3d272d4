from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lmq.remoting.commands import Command
from lmq.remoting.signature import AccessKeys, is_signed_with, sign

KEYS = AccessKeys("RocketMQ", "12345678")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def test_signature_is_the_hmac_of_the_values_by_name_and_the_body():
    """Made with OpenSSL: `printf RocketMQabTbody | openssl dgst -sha1 -hmac 12345678 -binary | base64`."""
    command = Command(10, ext={"z": "T", "b": "b", "a": "a"}, body=b"body")
    sign(command, KEYS)
    assert command.ext == {
        "z": "T",
        "b": "b",
        "a": "a",
        "AccessKey": "RocketMQ",
        "Signature": "p7TpzCNaCHPqET0rWq4LD+KPatM=",
    }


@given(st.dictionaries(TEXTS, TEXTS, max_size=5), st.binary(max_size=20))
def test_what_is_signed_is_found_so_with_the_same_secret_alone(ext, body):
    command = Command(10, ext=ext, body=body)
    sign(command, KEYS)
    assert is_signed_with(command, b"12345678")
    assert not is_signed_with(command, b"1234567")
    assert not is_signed_with(Command(10, ext=command.ext, body=body + b"x"), b"12345678")


def test_signing_again_replaces_the_signature():
    command = Command(10, ext={"a": "1"})
    sign(command, KEYS)
    command.ext["a"] = "2"
    assert not is_signed_with(command, b"12345678")
    sign(command, KEYS)
    assert is_signed_with(command, b"12345678")


@pytest.mark.parametrize("name", ["SecurityToken", "_UNIQUE_KEY_QUERY"])
def test_fields_that_some_clients_add_after_they_signed_do_no_harm(name):
    command = Command(12, ext={"key": "k"})
    sign(command, KEYS)
    command.ext[name] = "true"
    assert is_signed_with(command, b"12345678")
    command.ext["other"] = "true"
    assert not is_signed_with(command, b"12345678")


@pytest.mark.parametrize("said", [{}, {"Signature": ""}, {"Signature": "\u00e9"}, {"Signature": "AAAA"}])
def test_no_signature_is_none(said):
    assert not is_signed_with(Command(10, ext={"AccessKey": "RocketMQ", **said}), b"12345678")
