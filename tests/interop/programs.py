"""Programs that run beside a test, and say in lines what befalls them."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Sequence

import pytest
from benches.processes import ROOT

from tests.helpers import TIMEOUT_S, await_true

__all__ = ["Program"]

# How long a program takes to print one more line of its stacks.
_STACKS_S = 2.0


class Program:
    """A program that runs until it ends or is killed; what it prints is kept.

    Args:
        command: Its command line.
        name: What a failure calls it.
    """

    def __init__(self, command: Sequence[str], name: str = "the program") -> None:
        self.lines: list[str] = []
        self._name = name
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def process_id(self) -> int:
        """Of the program."""
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as printed:
            self.lines.extend(line.strip() for line in iter(printed.readline, ""))

    def all_printed(self, word: str) -> list[str]:
        """The rest of the lines so far that begin with a word."""
        return [line.removeprefix(word).strip() for line in self.lines if line.split(" ")[0] == word]

    def printed(self, word: str) -> str:
        """The rest of the first line that begins with a word, which is awaited."""
        with contextlib.suppress(AssertionError):
            await_true(lambda: self._process.poll() is not None or self.all_printed(word))
        if self._process.poll() is not None:
            self._reader.join()
        assert self.all_printed(word), f"{self._name} has not printed {word}\n{self.report()}"
        return self.all_printed(word)[0]

    def report(self) -> str:
        """Whether it runs, and everything that it has printed."""
        status = self._process.poll()
        state = f"runs as {self.process_id}" if status is None else f"has ended with {status}"
        return "\n".join([f"--- {self._name} {state}, and printed:", *self.lines])

    def print_stacks(self) -> None:
        """Have it print where each of its threads is; a JVM does so at this signal, and ours that were told to.

        Returns once nothing more comes.
        """
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
        count = -1
        while count < len(self.lines) and self._reader.is_alive():
            count = len(self.lines)
            self._reader.join(_STACKS_S)

    def ended(self) -> int:
        """Its status, once it has ended by itself."""
        try:
            status = self._process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.print_stacks()
            pytest.fail(f"{self._name} does not end\n{self.report()}")
        self._reader.join()
        return status

    @property
    def has_ended(self) -> bool:
        """Whether it has, and all that it printed is there."""
        return self._process.poll() is not None and not self._reader.is_alive()

    @property
    def words(self) -> set[str]:
        """The first words of the lines."""
        return {line.split(" ")[0] for line in self.lines}

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def terminate(self) -> None:
        """Ask it to end, and wait until it has."""
        self._process.terminate()
        self.ended()

    def kill(self) -> None:
        self._process.kill()
        self.ended()
