"""One connection of the AMQP door: what it does with the broker."""

from __future__ import annotations

import logging
from functools import partial

from pamqp import base
from pamqp.commands import Basic, Tx

from core.errors import LmqError
from core.properties import encode_origin
from gateway.amqp.answers import Answers
from gateway.amqp.blocking import Blocking
from gateway.amqp.channel import Channel
from gateway.amqp.commit_end import Commits, HeldPublisher, partly_committed
from gateway.amqp.confirms import Confirms
from gateway.amqp.connection import AmqpConnection
from gateway.amqp.consuming import Reading
from gateway.amqp.declaring import Declarer, hold_much, release_all
from gateway.amqp.entering import enter
from gateway.amqp.entrance import Entrance
from gateway.amqp.errors import AmqpError, PeerSilentError, error_from_core
from gateway.amqp.events import (
    ChannelEnded,
    ConnectionEnded,
    Event,
    LoginAsked,
    MethodCame,
    OpenAsked,
    ProofCame,
    PublishRun,
    SecretCame,
    SettleRun,
)
from gateway.amqp.functions import find_function
from gateway.amqp.output import ConnectionOutput
from gateway.amqp.publishing import Publisher
from gateway.amqp.queues import VirtualHost
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.services import AmqpServices
from gateway.amqp.states import State
from gateway.amqp.topic_questions import TopicQuestions
from gateway.amqp.transaction import Transaction
from gateway.auth.credentials import Identity
from gateway.auth.denials import Denials
from gateway.auth.permissions import Permissions
from gateway.auth.recheck import find_reason
from gateway.net.protocol import ConnectionHandler, Transport
from gateway.version import VERSION

LOGGER = logging.getLogger(__name__)

NOBODY = Identity("", Permissions(publish=False, subscribe=False, configure=False))


class AmqpHandler(ConnectionHandler):
    """One connection: events of the state machine to the broker, answers and deliveries back."""

    def __init__(self, door: AmqpServices, transport: Transport) -> None:
        self.output = ConnectionOutput(transport)
        self._door = door
        self._transport = transport
        self.answers = Answers(door.broker, self.output)
        self._commits = Commits(self.answers, self.output)
        self._confirms = Confirms(self.answers, self.output, door.metrics)
        self._blocking = Blocking(door.held, self.output)
        self._entrance = Entrance(door, transport)
        self._questions = TopicQuestions(transport)
        self._has_ended = False  # the peer sends no more, and its login is under way
        self._denials: Denials | None = None  # made when something is denied
        # Waits for a commit, an answer, or until what had the name before is gone.
        self._again: MethodCame | PublishRun | None = None
        self._vhost: VirtualHost | None = None  # what it is connected to, after the login
        self.let_in("", NOBODY)

    def let_in(self, client: str, identity: Identity) -> None:
        """Go by a user, on a connection that the client calls `client`."""
        self.client = client
        client_id = client or f"amqp-{self._transport.conn_id}"
        self._origin = encode_origin(b"amqp", client_id.encode(), identity.user.encode())
        self._identity = identity

    def renew(self, identity: Identity) -> None:
        """Go by a later login of the same user."""
        self._identity.renew(identity)
        self._publisher.look_anew()

    def go_on_later(self, error: AmqpError | None, now_ms: int) -> None:
        """Send what an answer that had to wait led to, fail with `error`, and go on with what came meanwhile."""
        if error is not None:
            self._fail(error, SecretCame(b""), now_ms)
        self._finish()
        self._transport.resume_reading()
        self._transport.request_turn()

    def _enter(self, vhost: VirtualHost) -> None:
        door = self._door
        self._vhost = vhost
        self.declarer = Declarer(vhost, self.output, self._identity, door.actor(self._transport, self._identity.user))
        self.reading = Reading(vhost, self.declarer, self.output, door.encoder, door.metrics)
        self._publisher = Publisher(door.broker, vhost, self._identity, door.metrics)

    # The transport calls these.

    def on_data(self, data: bytes, now_ms: int) -> bool:
        """Do what the bytes say; answers go out in one write."""
        connection = self._begin(now_ms)
        if self._questions.keeps(data):
            return False
        if self._entrance.attempt is not None:  # this much is kept, and no more is read
            self._transport.pause_reading()
        connection.receive_data(data, now_ms)
        return self._work(connection, now_ms)

    def go_on(self, now_ms: int) -> bool:
        """Do some more of it."""
        connection = self._begin(now_ms)
        connection.take_up(now_ms)
        has_more = self._work(connection, now_ms)
        if self._has_ended and not has_more:
            self._has_ended = False
            self.on_eof(now_ms)
        return has_more

    def _work(self, connection: AmqpConnection, now_ms: int) -> bool:
        has_more = self._act(connection, now_ms)
        self.answers.hand_in()
        self._confirms.hand_in()
        self._blocking.hold_if_low()
        self._finish()
        return has_more

    def _act(self, connection: AmqpConnection, now_ms: int) -> bool:
        """Do what came, event by event; return whether something is left because others are to have their turn."""
        transport = self._transport
        while not (self._blocking.is_paused or self._questions.is_waiting):
            event = self._next_event(connection)
            if event is None and self._questions.kept:
                connection.receive_data(self._questions.take_kept(), now_ms)
                continue
            if event is None:
                return False
            self._do(event, now_ms)
            if self._again is not None or transport.is_share_over():
                return True
            if not transport.is_writable and isinstance(event, MethodCame):
                transport.pause_reading()  # a peer that does not read answers gets no more of them
                return True
        return False

    def _next_event(self, connection: AmqpConnection) -> Event | None:
        again, self._again = self._again, None
        is_open = again is not None and self.output.is_open(again.channel)  # it may have been closed meanwhile
        return again if is_open and connection.state == State.OPEN else next(connection.events(), None)

    def on_eof(self, now_ms: int) -> None:
        """The peer sends no more: nothing more is delivered to it, and what came is answered."""
        must_wait = self._entrance.attempt is not None or self._blocking.is_paused or self._questions.is_waiting
        must_wait = must_wait or self._commits.are_awaited
        if must_wait and (self._again is not None or self._begin(now_ms).has_more()):
            self._has_ended = True  # what came is done after the login, or the pause
            return
        self.output.is_ending = True
        self.answers.when_done(partial(self._hang_up, self._begin(now_ms)))

    def _hang_up(self, connection: AmqpConnection) -> None:
        connection.receive_eof()
        self._finish()

    def on_writable(self, now_ms: int) -> None:
        """Let consumers go on that waited for room, and methods."""
        self._transport.resume_reading()
        self._feed_starved(now_ms)

    def _feed_starved(self, now_ms: int) -> None:
        for channel in self._begin(now_ms).channels.values():
            Reading.run_starved(channel)

    def on_closed(self, now_ms: int) -> None:
        """Give back everything."""
        self._begin(now_ms).receive_eof()
        self._release()
        if self._denials is not None:
            self._denials.end()
        self._blocking.end()
        self._door.forget(self)

    def on_timer(self, now_ms: int) -> None:
        """Send heartbeats, give up on a silent peer, and go on where a pause is over."""
        self._blocking.end_pause(now_ms)
        pace = self.output.pace
        if pace is not None and pace.end_pause(now_ms):
            self._feed_starved(now_ms)
        if self._commits.are_awaited:  # and heartbeats are not read meanwhile
            self._begin(now_ms).heartbeat.received_ms = now_ms
        try:
            self._begin(now_ms).handle_timer(now_ms)
        except PeerSilentError as error:
            self._do(ConnectionEnded(str(error)), now_ms)
        self._finish()

    def next_deadline_ms(self) -> int | None:
        """Return when `on_timer` is wanted; at once while the time is not known."""
        return self._blocking.next_deadline_ms(self.output.connection)

    def _begin(self, now_ms: int) -> AmqpConnection:
        if self.output.connection is None:
            offer = self._door.offer_to(self._transport.peer_name, self._transport.ways)
            self.output.connection = AmqpConnection(offer, self._door.cutters, now_ms, VERSION, self._door.metrics)
        return self.output.connection

    def _finish(self) -> None:
        self.output.flush()
        if self.output.connection is not None and self.output.connection.is_closed:
            self._release()
            self._transport.finish()

    def shut_down(self, now_ms: int) -> None:
        """Tell the client that the gateway goes down, and close."""
        self._force_out("the gateway stops", "broker forced connection closure with reason 'shutdown'", now_ms)

    @property
    def transport(self) -> Transport:
        """Its output."""
        return self._transport

    @property
    def identity(self) -> Identity | None:
        """The user; None before the login."""
        return None if self._identity is NOBODY else self._identity

    def turn_out(self, now_ms: int, reason: str = "") -> None:
        """Close because the user may not come in any more, or for the reason that an operator gives."""
        self._door.metrics.refuse("turned_out")
        told = reason or f"user '{self._identity.user}' may not come in any more"
        clock = self._door.authenticator.clock
        self._force_out(reason or find_reason(self._identity, clock.machine_ms()), told, now_ms)

    @property
    def vhost(self) -> VirtualHost | None:
        """The virtual host that it is in; None before it chose one."""
        return self._vhost

    def close_channel(self, now_ms: int, channel: Channel, error: AmqpError) -> None:
        """Close a channel for what its client left undone, or cannot have."""
        self._fail(error, ChannelEnded(channel), now_ms)
        self._finish()

    def _force_out(self, why: str, reason: str, now_ms: int) -> None:
        self._note_end(why)
        self._again = None
        connection = self._begin(now_ms)
        if connection.state == State.OPEN:
            connection.close(AmqpError(ReplyCode.CONNECTION_FORCED, reason))
        self._hang_up(connection)

    # Events

    def _do(self, event: Event, now_ms: int) -> None:
        try:
            self._do_event(event, now_ms)
        except AmqpError as error:
            self._again = self._questions.try_again(self._identity.topics, event)
            if self._again is None:
                self._fail(error, event, now_ms)
        except LmqError as error:
            self._fail(error_from_core(error), event, now_ms)

    def _fail(self, error: AmqpError, event: Event, now_ms: int) -> None:
        channel = getattr(event, "channel", None)
        if isinstance(event, MethodCame):
            error.method_index = error.method_index or event.method.index
        self._door.metrics.refuse(error.code.name.lower())
        if error.denied:
            self._note_denied(event, error.denied, error.by)
        else:
            LOGGER.info(
                "refused conn=%d channel=%s error=%s", self._transport.conn_id, channel and channel.number, error
            )
        for ended in self._begin(now_ms).fail(error, channel):
            self._do_event(ended, now_ms)

    def _do_event(self, event: Event, now_ms: int) -> None:
        if isinstance(event, PublishRun):
            if self._identity.topics and self._questions.must_wait(self._identity.topics, event, self._publisher):
                self._again = event
                return
            self._blocking.note_published(self._begin(now_ms), event.batch, now_ms)
            if event.channel.transaction is None:
                self._publish(event, now_ms)
            else:
                self._hold(event, now_ms)
            self._blocking.note_taken(self._begin(now_ms), event.batch, now_ms)
        elif isinstance(event, SettleRun):
            self.reading.settle(event.channel, now_ms)
        elif isinstance(event, MethodCame):
            self._do_method(event.channel, event.method, now_ms)
        elif isinstance(event, ChannelEnded):
            self.reading.release(event.channel, now_ms)
        elif isinstance(event, LoginAsked | ProofCame | SecretCame):
            self._entrance.take(event, self, self._begin(now_ms))
        elif isinstance(event, OpenAsked):
            self._do_open(event, self._begin(now_ms))
        elif isinstance(event, ConnectionEnded):
            self._end(event)

    def _note_denied(self, event: Event, name: str, by: str) -> None:
        self._denials = self._denials or Denials(self._door.actor(self._transport, self._identity.user))
        self._denials.note("publish" if isinstance(event, PublishRun) else "operation", name, by)

    def _do_open(self, event: OpenAsked, connection: AmqpConnection) -> None:
        self._enter(enter(self._door.vhosts, event.vhost, self, self._identity, self._door.authenticator.quotas))
        self._blocking.pacing = self._door.find_pacing(self, connection.heartbeat.received_ms)
        self.output.pace = self._door.find_out_pace(self, connection.heartbeat.received_ms)
        self.output.payload_max = connection.payload_max
        connection.accept_open()

    def _publish(self, event: PublishRun, now_ms: int) -> None:
        event.batch.origin = self._origin
        event.batch.born_host = self._transport.peer_host
        self._publisher.publish(event, self.output, self._transport, now_ms)
        if event.batch.count < event.count:
            self._begin(now_ms).unread(event)
        event.release()
        if event.first_number:
            first, batch = event.first_number, event.batch
            refused = [first + i for i in self._door.broker.detours.full.refused if i < batch.appended]
            if refused:
                self._door.metrics.refuse("queue_full", len(refused))
            numbers = (*refused, *range(first + batch.appended, first + batch.count))  # and what found no room
            self._confirms.add(batch.ticket, event.channel, first, numbers)

    def _hold(self, event: PublishRun, now_ms: int) -> None:
        """Keep what a transactional channel publishes, for its commit."""
        self._publisher.check(event, self._transport)
        if event.batch.count < event.count:
            self._begin(now_ms).unread(event)
        event.channel.transaction.hold(event)
        event.release()

    def _end(self, event: ConnectionEnded) -> None:
        if event.reason:
            LOGGER.warning("closing connection conn=%d reason=%s", self._transport.conn_id, event.reason)
        self._note_end(event.reason or "connection.close")
        self._release()

    def _note_end(self, why: str) -> None:
        self._transport.end_reason = self._transport.end_reason or why

    def _release(self) -> None:
        """Give back what the connection has: unacknowledged messages, consumers, exclusive queues."""
        if self.output.is_released:
            return
        self.output.is_released = True
        self._entrance.cancel()
        if self._vhost is None or self.output.connection is None:
            return
        self._vhost.connections.discard(self)
        channels = list(self.output.connection.channels.values())
        owned, heard_ms = self.declarer.remove_owned(), self.output.connection.heartbeat.received_ms
        work = release_all(channels, self.reading, owned, heard_ms)
        self._vhost.chores.start(work, is_long=hold_much(channels))
        self._publisher.end()

    # Methods

    def _do_method(self, channel: Channel, method: base.Frame, now_ms: int) -> None:
        if type(method) is Basic.Get and self.answers.are_prompt() and self.reading.can_get(channel, method.queue):
            self._give_one(channel, method, now_ms)
            return
        if self._commits.must_wait(channel, method, self._vhost):
            self._again = MethodCame(channel, method)
            return
        again = find_function(method)(self, channel, method, now_ms)
        if again is not None:
            self._again = MethodCame(channel, again)

    def do_get(self, channel: Channel, method: Basic.Get, now_ms: int) -> None:
        """Give one message, later where the connection, or others that share a rate with it, were given too many."""
        pace = self.output.pace
        if pace is not None and not pace.room() and pace.until_ms > now_ms:
            self._again = MethodCame(channel, method)
            self._blocking.pause(self._begin(now_ms), pace.until_ms)
            return
        self._give_one(channel, method, now_ms)

    def _give_one(self, channel: Channel, method: Basic.Get, now_ms: int) -> None:
        """Answer a basic.get; all that came before it has been answered."""
        data = self.reading.get(channel, method, now_ms)
        if data is None:
            self.output.send_method(channel, Basic.GetEmpty())
        elif data:
            self.output.put(data)
        else:  # on its way: what came after it waits, too
            self._again = MethodCame(channel, method)
            self._transport.request_turn()

    def commit(self, channel: Channel, method: Tx.Commit, now_ms: int) -> None:
        """Publish what a transaction holds, in several turns where it is very much; then finish what it settled."""
        transaction: Transaction = channel.transaction
        by = HeldPublisher(self._publisher, self._door.broker, self.output, self._origin, self._transport.peer_host)
        if by.publish(transaction, now_ms):
            self._again = MethodCame(channel, method)
            return
        ticket, refused, settled = transaction.finish()
        if refused:
            self._door.metrics.refuse("queue_full", refused)
        settle = partial(self.reading.settle_held, channel, settled, now_ms)
        refuse = partial(self.close_channel, now_ms, channel)
        self._commits.wait(channel, ticket, settle, refuse, partly_committed() if refused else None)
