from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.settings.jwt import JwtSettings
from gateway.settings.models import AuthSettings, GatewaySettings
from gateway.settings.text import settings_text


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"algorithms": ["none"], "secret": "x"}, "algorithms"),
        ({"algorithms": ["HS256"]}, "needs a key beside algorithms"),
        ({"secret": "x"}, "needs algorithms beside the key"),
        ({"public_key": "key.pem"}, "needs algorithms beside the key"),
        ({"algorithms": ["HS256"], "secret": "x", "secret_env": "X"}, "give one"),
        ({"algorithms": ["HS256"], "secret": "(hidden)"}, "is hidden"),
        ({"algorithms": ["HS256"], "secret": "x", "user_claim": ""}, "user_claim"),
        ({"algorithms": ["HS256"], "secret": "x", "leeway_s": 301}, "leeway_s"),
        ({"jwks_url": "https://x"}, "needs algorithms beside the key"),
        ({"algorithms": ["RS256"], "jwks_url": "http://id.example.com/keys"}, "must be https"),
        ({"algorithms": ["RS256"], "jwks_url": "keys"}, "must be an address"),
        ({"algorithms": ["RS256"], "jwks_url": "https://x", "jwks_refresh_s": 1}, "jwks_refresh_s"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(said, why):
    with pytest.raises(ValidationError, match=why):
        JwtSettings.model_validate(said)


def test_no_tokens_are_taken_unless_it_is_said():
    assert JwtSettings() == AuthSettings().jwt
    assert JwtSettings().algorithms == ()


def test_secret_is_not_shown():
    said = AuthSettings.model_validate({"jwt": {"algorithms": ["HS256"], "secret": "s3cret"}})
    assert "s3cret" not in settings_text(GatewaySettings(auth=said))
    assert "s3cret" in settings_text(GatewaySettings(auth=said), with_secrets=True)
