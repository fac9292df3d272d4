from __future__ import annotations

import pytest

from lmq import (
    BusyError,
    MessageRefusedError,
    NoPermissionError,
    NotFoundError,
    ResponseError,
    UnsupportedError,
)
from lmq.errors import response_error


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1, ResponseError),
        (2, BusyError),
        (3, UnsupportedError),
        (13, MessageRefusedError),
        (16, NoPermissionError),
        (17, NotFoundError),
        (22, NotFoundError),
        (29, MessageRefusedError),
        (-7, ResponseError),
    ],
)
def test_a_response_code_becomes_its_error_with_code_and_remark(code, kind):
    error = response_error(code, "why")
    assert type(error) is kind
    assert (error.code, error.remark) == (code, "why")
    assert "why" in str(error)
    assert response_error(code, None).remark == ""
