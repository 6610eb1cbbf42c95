"""How a command ends: exit statuses, Ctrl-C, errors as one line.

| status | meaning |
|---|---|
| 0 | done; or stopped with Ctrl-C or SIGTERM, for a command that runs until stopped |
| 1 | failed; the reason is on stderr |
| 2 | the command line is wrong |
| 3 | the directory has no running driver, or none of its files |
| 4 | with `--exit-code`: something was found |
| 255 | a command of `headrace cluster` that Aeron's ClusterTool has too failed, for whatever reason |
| 130 | stopped with Ctrl-C before it was done, for a command that ends by itself |
| 143 | stopped with SIGTERM before it ran or was done; or stopped, and a handler of the user did not return in time |
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import click

import headrace
from headrace._base.control_characters import shown
from headrace._base.exceptions import DriverTimeoutError, HeadraceError
from headrace.tools import DriverFileMissingError, DriverGoneError, DriverNotReadyError

OK = 0
FAILED = 1
NO_DRIVER = 3
FOUND = 4
TOOL_FAILED = 255
INTERRUPTED = 130
TERMINATED = 143
# A supervisor waits for ten seconds, as the specification of the cluster has it.
_END_WITHIN_S = 8.0


def run_to_exit(app: click.Command, arguments: list[str]) -> int:
    """Run a command; return its exit status, and print on stderr why it failed."""
    if sys.stderr is None:
        # Closed by the parent. What cannot be said must not end the command with another error.
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        return fail("stdout is closed; redirect it to /dev/null to run without output", FAILED)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What its encoding lacks, such as a letter of a payload in Latin-1, is escaped, as Python does it on stderr.
        sys.stdout.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _terminate)
    try:
        # Not `app.main`, which has its own ideas of what a closed pipe and Ctrl-C mean.
        with app.make_context("headrace", arguments) as context:
            app.invoke(context)
        return OK
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as wrong:
        wrong.show()
        return wrong.exit_code
    except _Terminated:
        return TERMINATED
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (DriverFileMissingError, DriverNotReadyError, DriverGoneError, DriverTimeoutError) as absent:
        return fail(absent, NO_DRIVER)
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does. Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (HeadraceError, OSError) as failure:
        return fail(failure, FAILED)


class Stop:
    """Whether Ctrl-C or SIGTERM came, to be looked at between two pieces of work.

    A flag and not an exception, so that a stop never lands in the middle of drawing a table or polling a stream. A
    second Ctrl-C does raise, for a piece of work that does not end. A second SIGTERM does not: a supervisor may send it
    to the whole group and to each process, and it kills what does not end.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._is_starting = False
        self._wake_read, self._wake_write = os.pipe()

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until stopped, at most `timeout_s`; whether it was stopped."""
        if not self.is_set:
            select.select([self._wake_read], [], [], timeout_s)
        return self.is_set

    @contextlib.contextmanager
    def while_starting(self) -> Iterator[None]:
        """A stop ends the body with an exception: a start may wait for another process, and nothing runs yet."""
        self._is_starting = True
        try:
            yield
        finally:
            self._is_starting = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._is_starting or (self.is_set and number == signal.SIGINT):
            raise KeyboardInterrupt if number == signal.SIGINT else _Terminated
        if not self.is_set:
            self.is_set = True
            os.write(self._wake_write, b"\0")


@contextlib.contextmanager
def until_stopped() -> Iterator[Stop]:
    """For commands that run until stopped: the body checks the `Stop` it gets, and ends with status 0."""
    stop = Stop()
    previous = {number: signal.signal(number, stop._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        os.close(stop._wake_read)
        os.close(stop._wake_write)


@contextlib.contextmanager
def ends_in_time(stop: Stop) -> Iterator[None]:
    """For a body that runs handlers of the user: ends the process if it does not end 8 s after it was told to.

    That is as safe as any other end of the process, such as by ``kill -9``. What the main thread does is printed. The
    system tells of a signal also while the main thread is in code that is not Python's, where no handler of it runs.
    """
    signals, wake = os.pipe()
    os.set_blocking(wake, False)
    main = threading.get_ident()
    has_ended = threading.Event()

    def watch() -> None:
        while not stop.is_set and not has_ended.is_set():
            ready, _, _ = select.select([stop._wake_read, signals], [], [])
            if signals in ready and os.read(signals, 1)[0] in (signal.SIGINT, signal.SIGTERM):
                break
        if has_ended.wait(_END_WITHIN_S):
            return
        frames = traceback.extract_stack(sys._current_frames()[main])
        own = max((index for index, one in enumerate(frames) if _is_of_package(one.filename)), default=-1)
        # What the package called last.
        place = frames[min(own + 1, len(frames) - 1)]
        text = (
            f"{place.name} at {place.filename}:{place.lineno} has not returned within {_END_WITHIN_S:g} s of the "
            "signal to end: the process ended without it, as by kill -9"
        )
        fail(text, TERMINATED)
        os._exit(TERMINATED)

    watcher = threading.Thread(target=watch, name="headrace-end", daemon=True)
    watcher.start()
    previous = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        has_ended.set()
        os.write(stop._wake_write, b"\0")
        watcher.join()
        os.close(signals)
        os.close(wake)


def _is_of_package(path: str) -> bool:
    return Path(path).is_relative_to(Path(headrace.__file__).parent)


class _Terminated(KeyboardInterrupt):
    """SIGTERM came: what cleans up after Ctrl-C does so now."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated


def fail(failure: BaseException | str, status: int) -> int:
    """Print on stderr why a command failed; gives the exit status back."""
    click.echo(f"error: {shown(str(failure))}", err=True)
    return status
