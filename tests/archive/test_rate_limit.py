"""How often an archive's log says the same."""

import logging

import pytest

from headrace._agent.error_log import ErrorLog
from headrace._agent.rate_limit import RateLimit
from headrace.archive.server.log import ArchiveLog
from headrace.testing import ManualClock


def test_a_warning_that_comes_with_each_message_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first are told, the others counted, and another text is not held back by them."""
    caplog.set_level(logging.WARNING, "headrace.archive")
    clock, written = ManualClock(), bytearray(1 << 20)

    def write(offset: int, data: bytes) -> None:
        written[offset : offset + len(data)] = data

    log = ArchiveLog(ErrorLog(write, len(written)), clock, None)
    for number in range(1000):
        log.warning("a client sent rubbish", f"session {number}")
    log.warning("something else")
    assert caplog.messages[0] == "WARN - a client sent rubbish: session 0"
    assert caplog.messages[-1] == "WARN - something else"
    assert len(caplog.messages) == 21
    clock.advance(1.001)
    caplog.clear()
    log.warning("a client sent rubbish", "session 5000")
    assert caplog.messages == [
        "WARN - a client sent rubbish (and 980 more like this)",
        "WARN - a client sent rubbish: session 5000",
    ]


def test_texts_that_are_all_different_are_all_told_and_not_all_kept() -> None:
    limit = RateLimit(ManualClock())
    assert [limit.take(f"recording {number}") for number in range(5000)] == [0] * 5000
    assert len(limit._seconds) <= 1000
