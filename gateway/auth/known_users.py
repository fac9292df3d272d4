"""The users of the settings and of the data folder as one, kept up user by user: there may be a hundred thousand."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.auth.strangers import Strangers
from gateway.auth.users import User


class KnownUsers:
    """All users; one that the settings have is as they say, and one that is disabled has nothing to come in with.

    Args:
        of_settings: Those of the settings.
    """

    def __init__(self, of_settings: dict[str, User]) -> None:
        self.by_name: dict[str, User] = {}
        self.of_settings = of_settings
        self.strangers = Strangers(of_settings)

    @property
    def has_scram(self) -> bool:
        """Whether some user can prove the password by SCRAM, so that it may be offered."""
        return self.strangers.have_scram

    def follow(self, stored: Mapping[str, User]) -> None:
        """Go by all users of the data folder, and by those of the settings as they are now."""
        self.by_name.clear()
        self.by_name.update({name: _let_in(user) for name, user in stored.items()})
        self.by_name.update(self.of_settings)
        self.strangers.follow(self.by_name)

    def change(self, name: str, stored: User | None) -> User | None:
        """Go by one user of the data folder, None where it is not there; return who has the name now."""
        before = self.by_name.get(name)
        known = self.of_settings.get(name) or (None if stored is None else _let_in(stored))
        if known is None:
            self.by_name.pop(name, None)
        else:
            self.by_name[name] = known
        self.strangers.note(name, before, known)
        return known


def _let_in(user: User) -> User:
    return user.shut_out() if user.is_disabled else user
