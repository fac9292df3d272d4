from __future__ import annotations

import pytest

from gateway.auth.settings_users import make_users
from gateway.settings.models import AuthSettings, SettingsError
from tests.support.logins import quick_hash


def users(environment=None, **said):
    return make_users(AuthSettings.model_validate({"users": said}), environment or {})


def test_what_a_user_may_do_and_the_groups_stand_in_the_settings():
    bob = users(bob={"password_hash": quick_hash("x"), "may_publish": False, "groups": ["ops", "night"]})["bob"]
    assert bob.may == (False, True, True, ("ops", "night"))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({}, r"auth\.users\.bob needs password_hash or password_env, or a secret"),
        ({"password_env": "P"}, r"auth\.users\.bob\.password_env: P is not set"),
        ({"password_hash": "secret"}, r"wrong setting auth\.users\.bob\.password_hash: of no known kind"),
        ({"secret": "short"}, r"auth\.users\.bob: a secret has 6 characters or more"),
        ({"secret_env": "S"}, r"auth\.users\.bob\.secret_env: S is not set"),
    ],
)
def test_a_user_that_nobody_can_be_is_a_wrong_setting(said, text):
    with pytest.raises(SettingsError, match=text):
        users(bob=said)
