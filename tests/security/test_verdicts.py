"""The thread of an authenticator: one call after the other, whatever they do."""

import threading

import pytest

from headrace.security import Accepted, Challenge, Rejected, Verdict
from headrace.security.verdicts import PendingVerdict, Verdicts
from tests.helpers import TIMEOUT_S, await_true

SECRET = "M4RK3D-secret"


class Judge:
    """Does as the credentials say, and waits where they say so."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.seen: list[bytes] = []

    def on_connect(self, credentials: bytes) -> Verdict:
        self.seen.append(credentials)
        if credentials == b"wait":
            assert self.may_go_on.wait(TIMEOUT_S)
        if credentials == b"raise":
            raise ValueError(SECRET)
        if credentials == b"exit":
            raise SystemExit(SECRET)
        if credentials == b"no verdict":
            return True  # type: ignore[return-value]
        if credentials == b"text":
            return Accepted(SECRET)  # type: ignore[arg-type]
        return Accepted(credentials)


def verdict_of(pending: PendingVerdict) -> Verdict:
    """What the authenticator decides, in the end."""
    await_true(lambda: pending.poll() is not None)
    found = pending.poll()
    assert found is not None
    return found


def test_without_an_authenticator_everyone_is_accepted_at_once_and_nobody_in_particular() -> None:
    """In the caller's thread: nothing differs from an archive without authentication."""
    assert Verdicts(None).on_connect(b"anything").poll() == Accepted(b"")


def test_calls_are_made_one_after_the_other_and_a_cancelled_one_is_not_made() -> None:
    judge = Judge()
    verdicts = Verdicts(judge)
    first, second, third = (verdicts.on_connect(word) for word in (b"wait", b"left", b"stayed"))
    await_true(lambda: judge.seen == [b"wait"])
    second.cancel()
    assert first.poll() is None
    judge.may_go_on.set()
    assert verdict_of(third) == Accepted(b"stayed")
    assert verdict_of(first) == Accepted(b"wait")
    assert judge.seen == [b"wait", b"stayed"]
    assert second.poll() is None
    verdicts.close()


def test_a_call_that_no_one_waits_for_is_left_behind_and_the_next_one_made_beside_it() -> None:
    """Up to a number of threads; one that is done with its call ends."""
    before = set(threading.enumerate())
    judge = Judge()
    verdicts = Verdicts(judge)
    for count in range(1, 5):
        left = verdicts.on_connect(b"wait")
        await_true(lambda count=count: judge.seen.count(b"wait") == count)
        left.cancel()
        assert verdict_of(verdicts.on_connect(b"next")) == Accepted(b"next")
    left = verdicts.on_connect(b"wait")
    await_true(lambda: judge.seen.count(b"wait") == 5)
    left.cancel()
    last = verdicts.on_connect(b"last")
    assert last.poll() is None
    judge.may_go_on.set()
    assert verdict_of(last) == Accepted(b"last")
    await_true(lambda: len(set(threading.enumerate()) - before) == 1)
    verdicts.close()


def test_a_call_that_waits_is_made_when_the_one_before_it_is_given_up() -> None:
    """Without another call, which might never come."""
    judge = Judge()
    verdicts = Verdicts(judge)
    blocked = verdicts.on_connect(b"wait")
    await_true(lambda: judge.seen == [b"wait"])
    waiting = verdicts.on_connect(b"next")
    assert waiting.poll() is None
    blocked.cancel()
    assert verdict_of(waiting) == Accepted(b"next")
    judge.may_go_on.set()
    verdicts.close()


def test_a_call_that_waits_is_made_when_one_of_too_many_that_were_given_up_returns() -> None:
    """Also without another call."""
    before = set(threading.enumerate())
    may_go_on = [threading.Event() for _ in range(5)]
    seen: list[int] = []

    def wait(number: int) -> Verdict:
        seen.append(number)
        assert may_go_on[number].wait(TIMEOUT_S)
        return Accepted()

    verdicts = Verdicts(Judge())
    for number in range(5):
        left = verdicts.recheck(Accepted(recheck=lambda number=number: wait(number)))
        assert left is not None
        # Has another thread make it, if there may be one more.
        assert left.poll() is None
        await_true(lambda number=number: len(seen) == number + 1)
        left.cancel()
    waiting = verdicts.on_connect(b"last")
    assert waiting.poll() is None
    may_go_on[2].set()
    assert verdict_of(waiting) == Accepted(b"last")
    for event in may_go_on:
        event.set()
    await_true(lambda: len(set(threading.enumerate()) - before) == 1)
    verdicts.close()


@pytest.mark.parametrize(
    ("credentials", "words"),
    [
        (b"raise", "ValueError at test_verdicts.py:"),
        (b"exit", "SystemExit at test_verdicts.py:"),
        (b"no verdict", "it must return a verdict: it returned an object of class bool"),
        (b"text", "TypeError at authentication.py:"),
    ],
)
def test_what_is_no_verdict_rejects_one_client_and_its_note_has_no_text_of_the_plug_in(
    credentials: bytes, words: str
) -> None:
    """The thread goes on."""
    verdicts = Verdicts(Judge())
    pending = verdicts.on_connect(credentials)
    assert verdict_of(pending) == Rejected()
    assert words in pending.failure
    assert SECRET not in pending.failure
    assert verdict_of(verdicts.on_connect(b"next")) == Accepted(b"next")
    verdicts.close()


def test_the_answer_to_a_challenge_is_judged_by_what_the_challenge_has() -> None:
    verdicts = Verdicts(Judge())
    challenge = Challenge(b"?", lambda answer: Accepted(answer) if answer == b"right" else Rejected())
    assert verdict_of(verdicts.on_response(challenge, b"right")) == Accepted(b"right")
    assert verdict_of(verdicts.on_response(challenge, b"wrong")) == Rejected()
    verdicts.close()


def test_verdicts_do_not_show_what_is_in_them() -> None:
    shown = repr([Accepted(SECRET.encode()), Challenge(SECRET.encode(), lambda _: Rejected())])
    assert SECRET not in shown
