"""Programs that run beside a test, and say in lines what befalls them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence

import pytest
from benches.processes import ROOT

from tests.helpers import TIMEOUT_S, await_true

__all__ = ["Program"]


class Program:
    """A program that runs until it ends or is killed; what it prints is kept."""

    def __init__(self, command: Sequence[str]) -> None:
        self.lines: list[str] = []
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
        await_true(lambda: self._process.poll() is not None or self.all_printed(word))
        if self._process.poll() is not None:
            self._reader.join()
        assert self.all_printed(word), "\n".join(self.lines)
        return self.all_printed(word)[0]

    def ended(self) -> int:
        """Its status, once it has ended by itself."""
        try:
            status = self._process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            pytest.fail("it does not end, and printed:\n" + "\n".join(self.lines))
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

    def terminate(self) -> None:
        """Ask it to end, and wait until it has."""
        self._process.terminate()
        self.ended()

    def kill(self) -> None:
        self._process.kill()
        self.ended()
