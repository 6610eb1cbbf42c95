"""Checks that a service does the same for the same entries: two instances of it read one log, and are compared.

They differ in the role of their member, as members of one cluster do, and a member from its own replay.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from headrace._base.checks import excerpt, shown
from headrace.cluster.errors import ClusterError
from headrace.cluster.protocol.codes import CloseReason, ClusterTimeUnit, Role
from headrace.cluster.service.callbacks import CheckFinding, HandlerRaised, handled, told
from headrace.cluster.service.cluster import Cluster
from headrace.cluster.service.clustered_service import ClusteredService
from headrace.cluster.service.nondeterminism import Guard
from headrace.cluster.service.session import ClientSession
from headrace.cluster.service.validation import check_service

__all__ = ["DeterminismCheck", "DeterminismError"]

_NOTHING = object()
_OTHER_ROLE = {Role.LEADER: Role.FOLLOWER, Role.CANDIDATE: Role.LEADER, Role.FOLLOWER: Role.LEADER}
# What an offer that was taken returns on a member that does not lead, and on one that does.
_TAKEN = {Role.FOLLOWER: 1, Role.CANDIDATE: 1, Role.LEADER: 1 << 20}
# How much of comparing states each entry pays for: bytes, and those that a message of its own costs besides.
_CREDIT = 4096
_MESSAGE_COST = 64


class DeterminismError(CheckFinding):
    """A service does not follow from the log alone; the text says where it was seen first."""


class _Tape:
    """What one instance asked for in one handler, and what it was told; the other instance is told the same.

    But for what offers to clients return that were taken, which is another number in another role.
    """

    def __init__(self, first: _Tape | None) -> None:
        self._first = first
        self.asked: list[tuple[Any, ...]] = []
        self._told: list[Any] = []

    def clear(self) -> None:
        """A handler begins."""
        self.asked.clear()
        self._told.clear()

    def did(self, what: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        """What `act` gives, if this is the first instance; else what it gave to that."""
        index = len(self.asked)
        self.asked.append(what)
        if self._first is not None:
            told = self._first._told[index] if index < len(self._first._told) else 1
        else:
            try:
                told = act()
            except Exception as refusal:
                told = refusal
            self._told.append(told)
        if isinstance(told, Exception):
            raise told
        return told


class _TapedSession:
    """A session, as one instance sees it."""

    def __init__(self, session: ClientSession, instance: _Instance) -> None:
        self._session = session
        self._instance = instance

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def offer(self, message: Any) -> Any:
        """See :meth:`ClientSession.offer`."""
        return self._offered(message, lambda: self._session.offer(message))

    def _offer_or(self, message: Any, instead: Any) -> Any:
        return self._offered(message, lambda: self._session._offer_or(message, instead))

    def _offered(self, message: Any, act: Callable[[], Any]) -> Any:
        instance = self._instance
        told = instance.tape.did(("session.offer", self._session.id, _bytes(message)), act)
        return _TAKEN[instance.role] if instance.plays and told > 0 else told

    def close(self) -> Any:
        """See :meth:`ClientSession.close`."""
        return self._instance.tape.did(("session.close", self._session.id), self._session.close)


class _TapedCluster:
    """The cluster, as one instance sees it."""

    def __init__(self, cluster: Cluster, instance: _Instance) -> None:
        self._cluster = cluster
        self._instance = instance

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    @property
    def role(self) -> Role:
        """See :attr:`Cluster.role`."""
        return self._instance.role if self._instance.plays else self._cluster.role

    @property
    def sessions(self) -> tuple[ClientSession, ...]:
        """See :attr:`Cluster.sessions`."""
        return tuple(self._instance.session(session) for session in self._cluster.sessions)

    def session(self, session_id: int) -> ClientSession | None:
        """See :meth:`Cluster.session`."""
        found = self._cluster.session(session_id)
        return None if found is None else self._instance.session(found)

    def close_session(self, session_id: int) -> Any:
        """See :meth:`Cluster.close_session`."""
        return self._did(("close_session", session_id), lambda: self._cluster.close_session(session_id))

    def schedule_timer(self, correlation_id: int, deadline: int) -> Any:
        """See :meth:`Cluster.schedule_timer`."""
        what = "schedule_timer", correlation_id, deadline
        return self._did(what, lambda: self._cluster.schedule_timer(correlation_id, deadline))

    def cancel_timer(self, correlation_id: int) -> Any:
        """See :meth:`Cluster.cancel_timer`."""
        return self._did(("cancel_timer", correlation_id), lambda: self._cluster.cancel_timer(correlation_id))

    def offer(self, message: Any) -> Any:
        """See :meth:`Cluster.offer`."""
        return self._did(("cluster.offer", _bytes(message)), lambda: self._cluster.offer(message))

    def _did(self, what: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        return self._instance.tape.did(what, act)


class _Instance:
    """One of the two services, with what it asked for.

    Attributes:
        plays: Whether it plays a role that its member does not have.
        role: Which one; every service begins as a follower.
    """

    def __init__(self, service: ClusteredService, first: _Instance | None) -> None:
        self.service = service
        self.plays = first is not None
        self.role = Role.FOLLOWER
        self.tape: _Tape = _Tape(None if first is None else first.tape)
        self._sessions: dict[int, ClientSession] = {}

    def cluster(self, cluster: Cluster) -> Cluster:
        """The cluster, as this instance sees it."""
        return cast("Cluster", _TapedCluster(cluster, self))

    def session(self, session: ClientSession) -> ClientSession:
        """A session, as this instance sees it: always the same object."""
        if session.id not in self._sessions:
            self._sessions[session.id] = cast("ClientSession", _TapedSession(session, self))
        return self._sessions[session.id]

    def play(self, role: Role) -> None:
        """Be in a role from now on."""
        if role is not self.role:
            self.role = role
            # What the handler raises, it raises in the first instance once that is in this role.
            with contextlib.suppress(HandlerRaised), handled():
                self.service.on_role_change(role)

    def forget(self, session: ClientSession) -> None:
        """The session is closed."""
        self._sessions.pop(session.id, None)

    def call(self, name: str, arguments: tuple[Any, ...], guard: Guard) -> BaseException | None:
        """Call a handler; gives what it raised."""
        given = [self.session(one) if isinstance(one, ClientSession) else one for one in arguments]
        self.tape.clear()
        try:
            with guard.watching(), handled():
                getattr(self.service, name)(*given)
        except HandlerRaised as raised:
            return raised.failure
        return None


class DeterminismCheck(ClusteredService):
    """Two instances of a service: each entry goes to both, and what they send and keep is compared.

    The second instance plays the other role: a follower where the member leads, and a leader where it does not, as in a
    replay. So what follows from ``cluster.role``, or from what an offer returns, is found.

    ``ClusterNode(DeterminismCheck(Accounts), ...)`` runs ``Accounts`` so; any place that takes a service will do.
    The first instance answers clients. The first difference is raised as :class:`DeterminismError` from the handler, so
    that the error log has it with its log position; after it the instances are no longer compared. So is each place in
    which a handler asks for the time, for random numbers, for ``hash()`` or for a thread, once.

    What was found fails the program: :meth:`headrace.cluster.ClusterNode.close` raises it, and so does the end of the
    node's ``with`` block. Where another part runs the service, call :meth:`verify`.

    For tests: it is many times slower. It cannot find what is the same for two instances in one process and differs
    between processes, such as the order of a set of texts; ``headrace cluster check-determinism`` finds that.

    Args:
        make: Makes an instance; called twice.
        state_every: After how many entries what :meth:`ClusteredService.on_take_snapshot` gives is compared as well; 0
            for at snapshots only. A state of more than 4 KiB is compared less often, so that a check takes time in
            proportion to the log. The state may then have parted before the entry that is named; the text says since
            when.

    Attributes:
        difference: Where and how the instances parted; ``None`` while they have not.
        findings: All that was found: the difference, and what handlers asked for that is not in the log.

    Raises:
        TypeError: What `make` is or gives is of another type; the text says what to do.
        ConfigError: The service has a misspelt handler.
        ClusterError: The service has ``on_session_messages``.
    """

    def __init__(self, make: Callable[[], ClusteredService], *, state_every: int = 1) -> None:
        given: object = make
        if not callable(given):
            name = type(given).__qualname__
            rule = f"must be callable, since it makes two instances: give the class, {name}, or a function"
            raise TypeError(f"make={shown('make', given)}: {rule}")
        first = make()
        check_service("make()", first)
        self._make = make
        self._first = _Instance(first, None)
        if hasattr(self._first.service, "on_session_messages"):
            raise ClusterError(
                f"{type(self._first.service).__name__} has on_session_messages, and a check passes messages one by "
                "one: check a subclass without it, whose on_session_message does the same"
            )
        second = make()
        if second is first:
            raise TypeError(
                f"make={shown('make', given)}: must make a new instance at each call; it returned the same object "
                "twice"
            )
        self._second = _Instance(second, self._first)
        self._state_every = state_every
        self._entry_count = self._credit = self._cost = 0
        self._alike_at: int | None = None
        # Of the state after the last entry, if it was looked at.
        self._digest: str | None = None
        self._guard = Guard()
        self._cluster: Cluster | None = None
        self.difference: str | None = None
        self.findings: list[str] = []
        self.message_views = self._first.service.message_views  # type: ignore[misc]

    @property
    def service(self) -> ClusteredService:
        """The instance that answers."""
        return self._first.service

    def verify(self) -> None:
        """Look whether anything was found.

        Raises:
            DeterminismError: Something was; the text has all of it.
        """
        if self.findings:
            raise DeterminismError("; ".join(self.findings))

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        """See :class:`ClusteredService`."""
        self._cluster = cluster
        messages = None if snapshot is None else list(snapshot)
        for instance in (self._first, self._second):
            instance.service.on_start(instance.cluster(cluster), messages)
        if self._state_every:
            self._compare_states("on_start")

    def on_session_open(self, session: ClientSession, timestamp: int) -> None:
        """See :class:`ClusteredService`."""
        self._both("on_session_open", session, timestamp)

    def on_session_close(self, session: ClientSession, timestamp: int, reason: CloseReason) -> None:
        """See :class:`ClusteredService`."""
        try:
            self._both("on_session_close", session, timestamp, reason)
        finally:
            self._first.forget(session)
            self._second.forget(session)

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        """See :class:`ClusteredService`."""
        self._both("on_session_message", session, timestamp, message, position)

    def on_timer_event(self, correlation_id: int, timestamp: int) -> None:
        """See :class:`ClusteredService`."""
        self._both("on_timer_event", correlation_id, timestamp)

    def on_take_snapshot(self) -> Iterator[bytes]:
        """See :class:`ClusteredService`. The two instances are asked in turn, message by message."""
        pairs = itertools.zip_longest(
            self._first.service.on_take_snapshot(),
            self._second.service.on_take_snapshot(),
            fillvalue=_NOTHING,
        )
        for number, (first, second) in enumerate(pairs):
            if self.difference is None and not _is_same(first, second):
                self._part(
                    f"on_take_snapshot: message {number} of the state is {_shown(first)}", _shown(second)
                )
            if first is not _NOTHING:
                yield cast("bytes", first)

    def on_role_change(self, role: Role) -> None:
        """See :class:`ClusteredService`."""
        self._first.service.on_role_change(role)
        self._second.play(_OTHER_ROLE[role])

    def on_terminate(self, cluster: Cluster) -> None:
        """See :class:`ClusteredService`."""
        for instance in (self._first, self._second):
            instance.service.on_terminate(instance.cluster(cluster))

    def on_new_leadership_term(
        self,
        leadership_term_id: int,
        log_position: int,
        timestamp: int,
        term_base_log_position: int,
        leader_member_id: int,
        log_session_id: int,
        time_unit: ClusterTimeUnit,
        app_version: int,
    ) -> None:
        """See :class:`ClusteredService`."""
        self._both(
            "on_new_leadership_term",
            leadership_term_id,
            log_position,
            timestamp,
            term_base_log_position,
            leader_member_id,
            log_session_id,
            time_unit,
            app_version,
        )

    def do_background_work(self, now_ns: int) -> int:
        """See :class:`ClusteredService`. It is no part of the state: the first instance does it."""
        return self._first.service.do_background_work(now_ns)

    def _both(self, name: str, *arguments: Any) -> None:
        """Give an entry to both, compare, and raise what the first one raised."""
        assert self._cluster is not None, "started"
        self._second.play(_OTHER_ROLE[self._cluster.role])
        self._digest = None
        failure = self._first.call(name, arguments, self._guard)
        other = self._second.call(name, arguments, self._guard)
        if self.difference is None:
            self._compare(name, failure, other)
        self._entry_count += 1
        self._credit += _CREDIT
        is_due = bool(self._state_every) and self._entry_count % self._state_every == 0
        if is_due and self._credit >= self._cost and self.difference is None:
            self._compare_states(name)
        if failure is not None:
            raise failure
        found = self._guard.taken()
        if found is not None:
            raise self._finding(f"{name}: {found}")

    def _compare(self, name: str, failure: BaseException | None, other: BaseException | None) -> None:
        # The text of an exception is no part of the state, and may have an address of an object.
        if type(failure) is not type(other):
            self._part(f"{name} raises {_raised(failure)}", _raised(other))
        for first, second in itertools.zip_longest(self._first.tape.asked, self._second.tape.asked):
            if first != second:
                self._part(f"{name} asks for {_shown(first)}", _shown(second))

    def _compare_states(self, name: str) -> None:
        states = self._first.service.on_take_snapshot(), self._second.service.on_take_snapshot()
        cost, digest = 0, hashlib.sha256()
        for number, (first, second) in enumerate(itertools.zip_longest(*states, fillvalue=_NOTHING)):
            if not _is_same(first, second):
                since = ""
                if self._cost > _CREDIT:
                    since = f" (the states were still alike at log_position={self._alike_at})"
                text = f"after {name}{since} message {number} of the state is {_shown(first)}"
                self._part(text, _shown(second))
            data = bytes(cast("bytes", first))
            cost += _MESSAGE_COST + len(data)
            digest.update(b"%d:" % len(data) + data)
        self._cost, self._credit, self._digest = cost, 0, digest.hexdigest()
        self._alike_at = self._position

    @property
    def _position(self) -> int:
        return 0 if self._cluster is None else self._cluster.log_position

    def _difference_from(self, stored: list[bytes], state: list[bytes]) -> str | None:
        """In what a state is not that of a member's snapshot, which another version may have laid out otherwise."""
        assert self._cluster is not None, "started"
        try:
            with handled():
                service = self._make()
                service.on_start(self._first.cluster(self._cluster), iter(stored))
                again = [bytes(message) for message in service.on_take_snapshot()]
        except HandlerRaised as raised:
            return f"the service cannot start with the snapshot that the member took there: {told(raised.failure)}"
        for number, (theirs, ours) in enumerate(itertools.zip_longest(again, state, fillvalue=_NOTHING)):
            if not _is_same(theirs, ours):
                theirs_shown = f"{_shown(theirs)} in the snapshot that the member took there"
                return f"message {number} of the state is {theirs_shown}, and {_shown(ours)} after a replay"
        return None

    def _part(self, first: str, second: str) -> None:
        # The call that is to blame, where one was seen, says more than the bytes that came of it.
        found = self._guard.taken()
        self.difference = (
            f"{'' if found is None else f'{found}; '}the service is not deterministic, first seen at "
            f"log_position={self._position}: {first}; in a second instance, in the other role, {second}"
        )
        raise self._finding(self.difference)

    def _finding(self, text: str) -> DeterminismError:
        self.findings.append(text)
        return DeterminismError(text)

    def __repr__(self) -> str:
        return f"DeterminismCheck({self.service!r}, difference={self.difference!r})"


def _bytes(message: Any) -> bytes:
    return b"".join(map(bytes, message)) if isinstance(message, (tuple, list)) else bytes(message)


def _raised(failure: BaseException | None) -> str:
    return "nothing" if failure is None else told(failure)


def _is_same(first: Any, second: Any) -> bool:
    if first is _NOTHING or second is _NOTHING:
        return False
    return bytes(first) == bytes(second)


def _shown(what: Any) -> str:
    return "nothing" if what is None or what is _NOTHING else excerpt(repr(what))
