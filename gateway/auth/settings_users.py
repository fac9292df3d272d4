"""The users that the settings name."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.auth.rule_book import Account
from gateway.auth.users import PasswordHashError, User, hash_password, parse_hash
from gateway.settings.models import AuthSettings, SettingsError, UserSettings

SECRET_LENGTH_MIN = 6  # RocketMQ's own bound; one that is to stand against guessing has 32 random characters


def make_users(settings: AuthSettings, environment: Mapping[str, str]) -> dict[str, User]:
    """Return the users of the settings, by name. A password from the environment is hashed, which takes 40 ms.

    Raises:
        SettingsError: A user without a name or password, one whose environment variable is not set, or one whose hash
            is none.
    """
    return {name: make_user(name, user, environment) for name, user in settings.users.items()}


def make_users_again(
    settings: AuthSettings, environment: Mapping[str, str], before: AuthSettings, users: Mapping[str, User]
) -> dict[str, User]:
    """Return the users of other settings than those `before`, which `users` are of.

    A password from the environment, which is the process's own, was hashed at the start: its hash stays.

    Raises:
        SettingsError: As `make_users`.
    """
    made = {}
    for name, user in settings.users.items():
        known = before.users.get(name)
        is_same = known is not None and user.password_env != "" and known.password_env == user.password_env
        made[name] = make_user(name, user, environment, users[name].kept if is_same else "")
    return made


def make_user(name: str, settings: UserSettings, environment: Mapping[str, str], kept: str = "") -> User:
    """Return a user; `kept` is the hash of its password from the environment, where that was made before.

    Raises:
        SettingsError: As `make_users`.
    """
    secret = _find_secret(name, settings, environment)
    if not name:
        raise SettingsError("auth.users needs a name for each user: the empty one is that of anonymous clients")
    may = Account(settings.may_publish, settings.may_subscribe, settings.may_configure, settings.groups)
    if settings.password_env:
        plain = environment.get(settings.password_env)
        if plain is None:
            raise SettingsError(f"auth.users.{name}.password_env: {settings.password_env} is not set")
        return User(name, may, kept or hash_password(plain), secret, settings.tags)
    if not settings.password_hash:
        if secret:
            return User(name, may, "", secret, settings.tags)
        raise SettingsError(f"auth.users.{name} needs password_hash or password_env, or a secret")
    try:
        parse_hash(settings.password_hash)
    except PasswordHashError as error:
        raise SettingsError(f"wrong setting auth.users.{name}.password_hash: {error}") from error
    return User(name, may, settings.password_hash, secret, settings.tags)


def _find_secret(name: str, settings: UserSettings, environment: Mapping[str, str]) -> bytes:
    secret = settings.secret
    if settings.secret_env:
        if settings.secret_env not in environment:
            raise SettingsError(f"auth.users.{name}.secret_env: {settings.secret_env} is not set")
        secret = environment[settings.secret_env]
    if (secret or settings.secret_env) and len(secret) < SECRET_LENGTH_MIN:
        raise SettingsError(f"auth.users.{name}: a secret has {SECRET_LENGTH_MIN} characters or more")
    return secret.encode()
