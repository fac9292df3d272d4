from __future__ import annotations

import pytest

from gateway.auth.backends.question import GROUPS_MAX, BackendError, check_groups


def test_groups_are_a_list_of_names():
    assert check_groups(["a", "b"]) == ("a", "b")
    assert check_groups(()) == ()


@pytest.mark.parametrize(
    "said", [None, "a b", {"a": 1}, ["a", 1], ["a\n"], [""], ["x" * 256], ["g"] * (GROUPS_MAX + 1)]
)
def test_everything_else_is_no_list_of_groups(said):
    with pytest.raises(BackendError):
        check_groups(said)
