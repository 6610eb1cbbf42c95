"""Ctrl-C while a call waits: the wait ends, and the call and the other threads go on."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import headrace
from headrace.rpc._reader_threads import ThreadReader
from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.boundary


def reader_of(requester: headrace.Requester) -> ThreadReader:
    return requester._link.current.reader


def interrupt_the_next_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read = ThreadReader._read

    def interrupted(*_: Any) -> bool:
        monkeypatch.setattr(ThreadReader, "_read", read)
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadReader, "_read", interrupted)


class InterruptedOnce(threading.Condition):
    """A condition whose first user is interrupted just after it gave the lock back."""

    is_due = True

    def __exit__(self, *exit_: Any) -> None:
        super().__exit__(*exit_)
        if self.is_due:
            self.is_due = False
            raise KeyboardInterrupt


def test_a_call_whose_wait_was_interrupted_gets_its_answer_at_the_next_wait(start, ask, release, monkeypatch):
    def wait(request: bytes) -> bytes:
        release.wait(TIMEOUT_S)
        return request

    start(wait)
    requester = ask()
    call = requester.submit(b"x")
    interrupt_the_next_read(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        call.result()
    assert requester.in_flight_count == 1
    release.set()
    assert call.result() == b"x"
    assert requester.in_flight_count == requester.unclaimed_count == 0


def test_a_request_that_was_interrupted_is_given_up(start, ask, monkeypatch):
    start(bytes.upper)
    requester = ask()
    interrupt_the_next_read(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        requester.request(b"x")
    assert requester.in_flight_count == 0
    assert requester.request(b"y") == b"Y"
    assert requester.unclaimed_count == 1


@pytest.mark.parametrize("begins", ["to wait for an answer", "to take what has come"])
def test_a_thread_that_is_interrupted_as_it_begins_to_read_leaves_the_reading_to_others(start, ask, begins):
    start(bytes.upper)
    requester = ask()
    call = requester.submit(b"x")
    reader = reader_of(requester)
    reader._changed = InterruptedOnce(threading.Lock())
    with pytest.raises(KeyboardInterrupt):
        call.result() if begins == "to wait for an answer" else reader.take()
    assert not reader._is_read
    assert call.result() == b"X"
