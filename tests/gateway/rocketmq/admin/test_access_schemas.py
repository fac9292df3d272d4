from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.rocketmq.admin.access_schemas import AclInfo, UserInfo, parse
from gateway.rocketmq.errors import CommandRefusedError


def test_what_a_tool_does_not_say_is_none():
    assert parse(UserInfo, b"{}") == UserInfo()
    said = b'{"policies": [{"entries": [{"resource": "*", "actions": ["All"], "decision": "Allow"}]}]}'
    (policy,) = parse(AclInfo, said).policies
    assert (policy.policyType, policy.entries[0].sourceIps) == ("Custom", None)


@given(st.text(max_size=200).filter(lambda said: not said.strip().startswith("{")))
def test_any_other_text_is_refused(said):
    with pytest.raises(CommandRefusedError) as caught:
        parse(AclInfo, said.encode("utf-8", "surrogatepass"))
    assert caught.value.code == 29


def test_a_remark_names_the_field():
    with pytest.raises(CommandRefusedError, match="userType"):
        parse(UserInfo, b'{"userType": "King"}')
