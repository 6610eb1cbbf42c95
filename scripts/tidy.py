"""House rules that no linter knows: `python scripts/tidy.py`.

Each check is a function from the tracked sources to findings. Clippy, ruff, import-linter and vulture check the rest:
`Cargo.toml`, `clippy.toml`, `pyproject.toml`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE_LENGTH_MAX = 700
MADE_BY_A_SCRIPT = "Made by `scripts/"
TESTS_IN_UNIT_LENGTH_MAX = 220
SOURCES_MIN = 20
# Spelled in pieces, or this file would find itself.
MARKERS = re.compile(
    "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", r"to" + r"do!\(", r"unimplemented" + r"!\("))
)
REGISTRY_HOSTS = re.compile(
    "|".join((r"pypi" + r"\.org", r"python" + r"hosted", r"static\.crates" + r"\.io"))
)
MACHINE_PATHS = re.compile(
    "(?:^|[^A-Za-z0-9_.])/(?:" + "|".join(("wo" + "rk", "fa" + "rm", "ro" + "ot", "ho" + "me")) + ")/"
)


@dataclass(frozen=True)
class Source:
    """A tracked text file; `path` is relative to the root."""

    path: str
    text: str

    @property
    def suffix(self) -> str:
        """What its name ends with, dot included."""
        return Path(self.path).suffix


Findings = Iterator[str]
Check = Callable[[list[Source]], Findings]


def tracked_sources(root: Path) -> list[Source]:
    """Every tracked text file that exists."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    sources = []
    for name in filter(None, listed.split("\0")):
        try:
            sources.append(Source(name, (root / name).read_text(encoding="utf-8")))
        except (FileNotFoundError, UnicodeDecodeError, IsADirectoryError):
            continue
    return sources


def check_markers(sources: list[Source]) -> Findings:
    """Nothing is left for later in the source; an issue is the place for that."""
    yield from _lines_with(sources, MARKERS, "leftover marker", skip=("Cargo.lock", "requirements/dev.lock"))


def check_registry_hosts(sources: list[Source]) -> Findings:
    """Where packages come from is the machine's choice, not the repository's."""
    yield from _lines_with(sources, REGISTRY_HOSTS, "registry host", skip=("Cargo.lock",))


def check_machine_paths(sources: list[Source]) -> Findings:
    """No path of a developer's machine."""
    yield from _lines_with(sources, MACHINE_PATHS, "path of a machine", skip=("Cargo.lock", "LICENSE"))


def _lines_with(
    sources: list[Source], pattern: re.Pattern[str], what: str, skip: tuple[str, ...]
) -> Findings:
    for source in sources:
        if source.path in skip:
            continue
        for number, line in enumerate(source.text.splitlines(), 1):
            if pattern.search(line):
                yield f"{source.path}:{number}: {what}: {line.strip()[:80]}"


def check_dead_rust_files(sources: list[Source]) -> Findings:
    """Every Rust file is reached by a `mod` line; cargo ignores one that is not, and so do its tests."""
    texts = {source.path: source.text for source in sources}
    for path in sorted(texts):
        inside = re.match(r"(.*/src)/(.+)\.rs$", path)
        if inside is None or inside[2] in ("lib", "main") or inside[2].startswith("bin/"):
            continue
        parts = inside[2].split("/")
        name = parts[-2] if parts[-1] == "mod" else parts[-1]
        folder = parts[: -2 if parts[-1] == "mod" else -1]
        parents = [f"{'/'.join([inside[1], *folder])}/mod.rs", f"{'/'.join([inside[1], *folder])}.rs"]
        if not folder:
            parents = [f"{inside[1]}/lib.rs", f"{inside[1]}/main.rs"]
        declared = re.compile(rf"\bmod\s+{re.escape(name)}\s*;")
        if not any(declared.search(texts.get(parent, "")) for parent in parents):
            yield f"{path}: no `mod {name};` reaches it"


def check_test_places(sources: list[Source]) -> Findings:
    """Tests of a Rust unit stand at the end of its file, and beside it in `tests.rs` when they are long."""
    for source in sources:
        if source.suffix == ".rs":
            length = source.text.partition("#[cfg(test)]\nmod tests {\n")[2].count("\n")
            if length > TESTS_IN_UNIT_LENGTH_MAX:
                yield (
                    f"{source.path}: {length} lines of tests, at most {TESTS_IN_UNIT_LENGTH_MAX}; "
                    "move them to tests.rs beside it"
                )


def check_lengths(sources: list[Source]) -> Findings:
    """A file has one idea; what a script makes is as long as the tables that it is made from."""
    for source in sources:
        length = source.text.count("\n")
        if (
            source.suffix in (".py", ".rs")
            and length > FILE_LENGTH_MAX
            and MADE_BY_A_SCRIPT not in source.text[:400]
        ):
            yield f"{source.path}: {length} lines; at most {FILE_LENGTH_MAX}"


CHECKS: tuple[Check, ...] = (
    check_markers,
    check_registry_hosts,
    check_machine_paths,
    check_dead_rust_files,
    check_test_places,
    check_lengths,
)


def main() -> int:
    """Exit status 1 if anything was found."""
    sources = tracked_sources(ROOT)
    if len(sources) < SOURCES_MIN:
        print(
            f"tidy: only {len(sources)} sources found under {ROOT}; a check of nothing proves nothing",
            file=sys.stderr,
        )
        return 1
    findings = [finding for check in CHECKS for finding in check(sources)]
    for finding in findings:
        print(finding)
    print(f"tidy: {len(sources)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
