from __future__ import annotations

import pytest

from core import errors
from core.errors import LmqError
from gateway.rocketmq.errors import RESPONSE_CODE_BY_ERROR, response_code_of
from lmq.remoting.response_codes import ResponseCode

CORE_ERRORS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LmqError)]


@pytest.mark.parametrize("kind", CORE_ERRORS)
def test_each_error_of_the_core_has_a_response_code(kind):
    assert kind in RESPONSE_CODE_BY_ERROR


def test_an_error_without_a_row_takes_that_of_its_parent():
    class NewError(errors.DiskFullError):
        pass

    assert response_code_of(NewError("x")) == ResponseCode.SYSTEM_BUSY
