"""Defects put in on purpose: one place of the code says something else, and a test must notice."""

from __future__ import annotations

import inspect
import os
import sys
import textwrap
from dataclasses import dataclass
from typing import Any

import pytest

__all__ = ["ALL_MUTANTS", "Edit", "Mutant"]

# `make mutants` sets it: without it only those are tried that are found within seconds.
ALL_MUTANTS = bool(os.environ.get("HEADRACE_ALL_MUTANTS"))


@dataclass(frozen=True)
class Edit:
    """What of the text of a function becomes what."""

    owner: Any
    """A class or module."""
    function: str
    old: str
    new: str

    def apply(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put the other function in the place of this one."""
        text = textwrap.dedent(inspect.getsource(getattr(self.owner, self.function)))
        assert text.count(self.old) == 1, f"{self.old!r} has its one place in {self.function}"
        module = sys.modules[getattr(self.owner, "__module__", self.owner.__name__)]
        made: dict[str, Any] = {}
        exec(f"from __future__ import annotations\n{text.replace(self.old, self.new)}", module.__dict__, made)
        before = getattr(self.owner, self.function)
        monkeypatch.setattr(self.owner, self.function, made[self.function])
        if inspect.ismodule(self.owner):
            # Others have imported it by name.
            for other in tuple(sys.modules.values()):
                if getattr(other, self.function, None) is before:
                    monkeypatch.setattr(other, self.function, made[self.function])


@dataclass(frozen=True)
class Mutant:
    """A defect, and within how many seeds it must be found."""

    name: str
    rules: tuple[int, ...]
    """Of the specification's 11.1."""
    edits: tuple[Edit, ...]
    within: int
    is_quick: bool = True
    """Found in seconds."""
    is_hole: bool = False
    """Nothing has found it yet."""
    kinds: tuple[str, ...] = ()
    """Of faults in the swarm, that show it soonest; by default the seed decides."""

    def apply(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put the defect in."""
        for edit in self.edits:
            edit.apply(monkeypatch)
