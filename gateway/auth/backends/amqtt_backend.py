"""Plugins that were written for amqtt, asked about logins."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.auth.backends.question import NO, NOT_MINE, BackendError, Question, Reply, Verdict
from gateway.auth.plugins import HostedSession, PluginError, PluginHost
from gateway.auth.topic_rights import TopicQuestion
from gateway.settings.backends import AmqttBackendSettings
from gateway.settings.models import SettingsError


class AmqttBackend:
    """Some plugins, which say yes or no together.

    Args:
        settings: Which.
        environment: Not asked for.

    Raises:
        SettingsError: One cannot be made.
    """

    def __init__(self, settings: AmqttBackendSettings, environment: Mapping[str, str]) -> None:
        del environment
        self.settings = settings
        try:
            self._host = PluginHost(settings.plugins, "lmq-plugins")
        except PluginError as error:
            raise SettingsError(f"plugins: {error}") from error

    def key(self, question: Question) -> tuple[str, ...]:
        """Return all that is known of a login: a plugin may look at any of it."""
        return (*question[:5], question.certificate.hex())

    sees_certificates = True

    async def ask(self, question: Question) -> Reply:
        """Return what the plugins say of a login.

        Raises:
            BackendError: One failed.
        """
        session = HostedSession(
            username=question.user,
            password=question.password,
            client_id=question.client,
            remote_address=question.host.strip("[]"),
            certificate=question.certificate,
        )
        try:
            answer = await self._host.authenticate(session)
        except PluginError as error:
            raise BackendError(str(error)) from error
        if answer is None or (answer and session.is_anonymous):  # nobody vouches for the name
            return NOT_MINE
        return Reply(Verdict.YES) if answer else NO

    @property
    def judges_topics(self) -> bool:
        """Whether one of the plugins says something of topics."""
        return self._host.has_topic_plugins

    async def ask_topic(self, question: TopicQuestion) -> bool:
        """Return what the plugins say of a topic: all of them yes.

        Raises:
            BackendError: One failed, or the topic is no text.
        """
        session = HostedSession(
            username=question.user, password="", client_id=question.client, remote_address=question.host.strip("[]")
        )
        try:
            return await self._host.filter_topic(session, question.topic.decode(), question.action)
        except (PluginError, UnicodeDecodeError) as error:
            raise BackendError(str(error)) from error

    def close(self) -> None:
        """Let the plugins end."""
        self._host.close()
