"""The house rules' checker finds what it should, and nothing in good sources."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "tidy.py"


@pytest.fixture(scope="module")
def tidy() -> ModuleType:
    sys.path.insert(0, str(SCRIPT.parent))  # as for a script, which finds its neighbours there
    specification = importlib.util.spec_from_file_location("tidy", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["tidy"] = module
    specification.loader.exec_module(module)
    return module


LATER = "TO" + "DO"
TESTS = "#[cfg(test)]\nmod tests {\n"
RULES = [
    ("check_markers", "a.py", f"x = 1  # {LATER} later", "x = 1  # to do so is fine"),
    ("check_registry_hosts", "docs/a.md", "see py" + "pi.org", "see the registry"),
    ("check_machine_paths", "a.sh", "cd /ho" + "me/me/x", "cd /dev/shm/x; a/home/b"),
    ("check_dead_rust_files", "crates/sys/src/lost.rs", "", None),
    ("check_test_places", "crates/sys/src/a.rs", TESTS + "\n" * 300, TESTS + "\n" * 200 + "}"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "path", "bad", "good"), RULES, ids=[f"{rule[0]}-{rule[1]}" for rule in RULES]
)
def test_each_rule_finds_what_breaks_it_and_only_that(
    tidy: ModuleType, check: str, path: str, bad: str, good: str | None
) -> None:
    run = getattr(tidy, check)
    findings = list(run([tidy.Source(path, bad)]))
    assert len(findings) == 1
    assert path in findings[0]
    if good is not None:
        assert list(run([tidy.Source(path, good)])) == []


def test_files_that_are_reached_are_not_dead(tidy: ModuleType) -> None:
    rust = {
        "crates/a/src/lib.rs": "mod one;\npub mod two;",
        "crates/a/src/one.rs": "",
        "crates/a/src/two/mod.rs": "mod three;",
        "crates/a/src/two/three.rs": "",
    }
    assert list(tidy.check_dead_rust_files([tidy.Source(path, text) for path, text in rust.items()])) == []


def test_files_have_a_length(tidy: ModuleType) -> None:
    made = '"""Made by `scripts/settings.py`; do not edit."""'
    texts = {"a.rs": "\n" * 700, "b.rs": "\n" * 701, "c.py": made + "\n" * 701}
    found = list(tidy.check_lengths([tidy.Source(path, text) for path, text in texts.items()]))
    assert found == ["b.rs: 701 lines; at most 700"]


def test_the_sources_of_this_repository_are_found(tidy: ModuleType) -> None:
    assert len(tidy.tracked_sources(tidy.ROOT)) > tidy.SOURCES_MIN
