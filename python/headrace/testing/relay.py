"""A UDP relay that stands between two drivers and is as bad a network as a test needs.

```text
publisher's driver  <->  front socket | forward path  -> | one socket a source  <->  subscriber's driver
                                      | <- backward path |
```

The publication's endpoint is the relay's; the subscription's endpoint is the relay's target. Data goes
forward, status messages and NAKs come back the same way. Each source address gets a socket of its own, so
that the target sees one peer for each.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import TracebackType

from headrace._base.checks import wrong
from headrace.testing.conditions import PERFECT, Conditions, NetworkPath, PathCounters, path_random
from headrace.testing.seeds import choose_seed, replay_note

Address = tuple[str, int]

_DATAGRAM_LENGTH_MAX = 65_536
_SOCKET_BUFFER_LENGTH = 4 << 20
_RECEIVES_A_TURN = 64
_SOURCES_MAX = 256


@dataclass(slots=True)
class _Flow:
    """One source's way through the relay."""

    source: Address
    socket: socket.socket
    forward: NetworkPath
    backward: NetworkPath


class Relay:
    """Relays datagrams between any number of senders and `target`, under conditions. A context manager.

    Runs on a thread of its own with its own sockets. Given the same seed and the same order of datagrams in a
    direction it does the same; the first source's paths are the same in every run, whatever its port. If the
    `with` body fails, the seed is added to the exception as a note; `HEADRACE_SEED` replays it.

    Attributes:
        seed: What decides the fate of each datagram.
        refused_sources: Datagrams of senders beyond the most that it relays for.
        failed_sends: Datagrams that the system did not take.

    Raises:
        ConfigError: `target` cannot be sent to from the address in `bind`.

    >>> with Relay(("127.0.0.1", 40456), forward=Conditions(loss=0.05), seed=7) as relay:  # doctest: +SKIP
    ...     publication = client.add_publication(f"aeron:udp?endpoint={relay.endpoint}", 1001)
    """

    def __init__(
        self,
        target: Address,
        *,
        forward: Conditions = PERFECT,
        backward: Conditions = PERFECT,
        seed: int | None = None,
        bind: Address = ("127.0.0.1", 0),
    ) -> None:
        self.seed = choose_seed(seed)
        _check_reachable(target, bind)
        self._target = target
        self._fault: BaseException | None = None
        self._conditions = (self._guarded(forward), self._guarded(backward))
        self._flows: dict[Address, _Flow] = {}
        self._is_cut = [False, False]
        self._lock = threading.Lock()
        self._is_closed = False
        self.refused_sources = 0
        self.failed_sends = 0
        self._front = _open_socket(bind)
        self._wake_receive, self._wake_send = socket.socketpair()
        self._wake_receive.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._front, selectors.EVENT_READ, None)
        self._selector.register(self._wake_receive, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, name="headrace-relay", daemon=True)
        self._thread.start()

    @property
    def address(self) -> Address:
        """Where to send to, as host and port."""
        host, port = self._front.getsockname()[:2]
        return host, port

    @property
    def endpoint(self) -> str:
        """Where to send to, as a channel's `endpoint` wants it."""
        host, port = self.address
        return f"{host}:{port}"

    @property
    def forward(self) -> PathCounters:
        """What happened so far on the way to the target, over all sources."""
        with self._lock:
            return _total(flow.forward.counters for flow in self._flows.values())

    @property
    def backward(self) -> PathCounters:
        """What happened so far on the way back, over all sources."""
        with self._lock:
            return _total(flow.backward.counters for flow in self._flows.values())

    def set_conditions(
        self, *, forward: Conditions | None = None, backward: Conditions | None = None
    ) -> None:
        """Change the conditions from the next datagram on; `None` keeps those of a direction."""
        with self._lock:
            old_forward, old_backward = self._conditions
            self._conditions = (
                self._guarded(forward) if forward else old_forward,
                self._guarded(backward) if backward else old_backward,
            )
            for flow in self._flows.values():
                flow.forward.conditions, flow.backward.conditions = self._conditions

    @contextlib.contextmanager
    def cut(self, *, forward: bool = True, backward: bool = True) -> Iterator[None]:
        """Drop every datagram, in the directions named, until the `with` body ends. Cuts may be nested."""
        with self._lock:
            was_forward, was_backward = self._is_cut
        self._set_cut(forward=was_forward or forward, backward=was_backward or backward)
        try:
            yield
        finally:
            self._set_cut(forward=was_forward, backward=was_backward)

    def close(self) -> None:
        """Stop relaying and close the sockets; what is still delayed is lost. Closing twice is allowed.

        Raises the first error that came out of an `affects` of the conditions; the datagrams it was asked about passed.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._wake_send.send(b"\0")
        self._thread.join()
        self._selector.close()
        for opened in (
            self._front,
            self._wake_receive,
            self._wake_send,
            *(f.socket for f in self._flows.values()),
        ):
            opened.close()
        if self._fault is not None:
            raise self._fault

    def __enter__(self) -> Relay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        finally:
            if value is not None:
                value.add_note(replay_note("headrace.testing.Relay", self.seed))

    def _set_cut(self, *, forward: bool, backward: bool) -> None:
        with self._lock:
            self._is_cut = [forward, backward]
            for flow in self._flows.values():
                flow.forward.is_cut, flow.backward.is_cut = forward, backward

    def _guarded(self, conditions: Conditions) -> Conditions:
        """The same, but where `affects` raises it affects nothing: `close` has its error, and traffic goes on."""
        affects = conditions.affects
        if affects is None:
            return conditions

        def guarded(datagram: bytes) -> bool:
            try:
                return affects(datagram)
            except BaseException as fault:
                self._fault = self._fault or fault
                return False

        return replace(conditions, affects=guarded)

    def _run(self) -> None:
        while not self._is_closed:
            events = self._selector.select(self._timeout_s())
            with self._lock:
                now_ns = time.monotonic_ns()
                for key, _ in events:
                    if key.fileobj is self._front:
                        self._receive_forward(now_ns)
                    elif isinstance(key.data, _Flow):
                        self._receive_backward(key.data, now_ns)
                self._deliver(now_ns)

    def _timeout_s(self) -> float | None:
        with self._lock:
            paths = [path for flow in self._flows.values() for path in (flow.forward, flow.backward)]
            deadlines = [at_ns for path in paths if (at_ns := path.next_deadline_ns()) is not None]
        if not deadlines:
            return None
        return max(0.0, (min(deadlines) - time.monotonic_ns()) / 1e9)

    def _receive_forward(self, now_ns: int) -> None:
        for datagram, source in _receive(self._front):
            flow = self._flows.get(source) or self._open_flow(source)
            if flow is not None:
                flow.forward.receive(datagram, now_ns)

    def _receive_backward(self, flow: _Flow, now_ns: int) -> None:
        for datagram, _ in _receive(flow.socket):
            flow.backward.receive(datagram, now_ns)

    def _open_flow(self, source: Address) -> _Flow | None:
        if len(self._flows) >= _SOURCES_MAX:
            self.refused_sources += 1
            return None
        number = len(self._flows)
        try:
            outward = _connected_socket(self.address[0], self._target)
        except OSError:
            # No way to the target now, or no file descriptor: the datagram is lost, and the next one tries again.
            self.failed_sends += 1
            return None
        paths = [
            NetworkPath(conditions, path_random(self.seed, f"{name}/{number}"), is_cut)
            for conditions, name, is_cut in zip(
                self._conditions, ("forward", "backward"), self._is_cut, strict=True
            )
        ]
        flow = self._flows[source] = _Flow(source, outward, paths[0], paths[1])
        self._selector.register(outward, selectors.EVENT_READ, flow)
        return flow

    def _deliver(self, now_ns: int) -> None:
        for flow in self._flows.values():
            for datagram in flow.forward.deliveries(now_ns):
                self._send(flow.socket, datagram, self._target)
            for datagram in flow.backward.deliveries(now_ns):
                self._send(self._front, datagram, flow.source)

    def _send(self, sender: socket.socket, datagram: bytes, to: Address) -> None:
        try:
            if sender is self._front:
                sender.sendto(datagram, to)
            else:
                sender.send(datagram)
        except OSError:
            # No socket has that address, or the kernel's buffer is full: to both sides the datagram is lost.
            self.failed_sends += 1

    def __repr__(self) -> str:
        state = ", closed" if self._is_closed else ""
        return f"Relay(target={self._target}, seed={self.seed}{state})"


def _open_socket(bind: Address) -> socket.socket:
    opened = socket.socket(socket.AF_INET6 if ":" in bind[0] else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            opened.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER_LENGTH)
        opened.bind(bind)
        opened.setblocking(False)
    except OSError:
        opened.close()
        raise
    return opened


def _connected_socket(host: str, target: Address) -> socket.socket:
    opened = _open_socket((host, 0))
    try:
        opened.connect(target)
    except OSError:
        opened.close()
        raise
    return opened


def _check_reachable(target: Address, bind: Address) -> None:
    """Refuse a target that no datagram from an address reaches, as one on another host from loopback."""
    with _open_socket((bind[0], 0)) as probe:
        try:
            probe.connect(target)
        except OSError as refusal:
            reason = f"cannot be sent to from bind={bind}: {refusal}"
            rule = f"{reason}; give bind= an address of this machine that reaches it"
            raise wrong("target", target, rule) from refusal


def _receive(opened: socket.socket) -> Iterator[tuple[bytes, Address]]:
    for _ in range(_RECEIVES_A_TURN):
        try:
            datagram, source = opened.recvfrom(_DATAGRAM_LENGTH_MAX)
        except BlockingIOError:
            return
        except OSError:
            # An earlier datagram met a closed port, or no way to its host. That is a loss, and this socket works on.
            continue
        yield datagram, source[:2]


def _total(counters: Iterator[PathCounters]) -> PathCounters:
    total = PathCounters()
    for one in counters:
        for name in PathCounters.__slots__:
            setattr(total, name, getattr(total, name) + getattr(one, name))
    return total
