"""House rules that no linter knows. `python scripts/tidy.py` checks, `--record` lowers the recorded debt.

Each check is a function from the tracked sources to findings. What a ratchet records may shrink and never
grow: old debt may stay, new debt may not.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from layers import CLUSTER_FILES, CRATE_MAY_USE, PYTHON_MAY_USE, PYTHON_ROOMS, PYTHON_WAYS_BACK

ROOT = Path(__file__).resolve().parent.parent
RATCHET = Path("scripts/tidy-ratchet.json")
FUNCTION_LENGTH_MAX = 70
FILE_LENGTH_MAX = 700
MADE_BY_A_SCRIPT = "Made by `scripts/"
TESTS_IN_UNIT_LENGTH_MAX = 220
SOURCES_MIN = 20
MAY_HOLD_UNSAFE = ("crates/buffers/", "crates/sys/", "crates/python/src/c_api.rs")
MAY_IMPORT_CORE = (
    "python/headrace/__init__.py",
    "python/headrace/client/",
    "python/headrace/driver/",
    "python/headrace/event_log.py",
    "python/headrace/testing/world.py",
    "scripts/settings.py",
    "scripts/states.py",
    "tests/",
)
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
# Where the machine's clocks and chance come in; everything else is handed them.
MAY_ASK_THE_MACHINE = ("crates/driver/src/environment.rs", "crates/client/src/config.rs")
HIDDEN_SOURCES = re.compile(
    r"\b(?:Instant::now|SystemTime::now|SystemClock::new|thread::sleep|Rng::new|fastrand::[a-z]\w*)\b"
)
# The same for the Python package, each with its reason.
PYTHON_MAY_ASK_THE_MACHINE = (
    # The clock of the machine itself.
    "python/headrace/clock.py",
    # A word for people about a wait that takes long for them, whatever the client goes by.
    "python/headrace/client/_events.py",
    # Where an archive takes numbers from that others must not guess, when it is handed no others.
    "python/headrace/archive/server/archive_server.py",
    # Names of clients that no other client has, when they are handed no others.
    "python/headrace/cluster/objects/client.py",
    "python/headrace/cluster/objects/async_client.py",
    # Names of directories that no other process has.
    "python/headrace/driver/__init__.py",
    "python/headrace/spark/_own_driver.py",
    # Names of queries and of attempts, which Spark's processes give independently of each other.
    "python/headrace/spark/_envelope.py",
    "python/headrace/spark/_sink.py",
    # A fresh seed, and what tests sockets of the machine.
    "python/headrace/testing/seeds.py",
    "python/headrace/testing/relay.py",
    # Programs of their own.
    "python/headrace/cli/",
    "python/headrace/demo/",
)
PYTHON_HIDDEN_SOURCES = {
    "time": {
        "time",
        "time_ns",
        "monotonic",
        "monotonic_ns",
        "perf_counter",
        "perf_counter_ns",
        "sleep",
        "localtime",
    },
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "threading": {"Timer"},
    "os": {"urandom", "getrandom"},
    "uuid": {"uuid1", "uuid4"},
    "secrets": None,
    "random": None,
}
# A generator that is handed a seed.
PYTHON_SEEDED = {("random", "Random")}


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


def code_lines(text: str) -> str:
    """Rust without comments and strings, line breaks kept, so that words and braces in them do not count."""
    pattern = r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\''
    return re.sub(pattern, lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)


def check_unsafe(sources: list[Source]) -> Findings:
    """`unsafe` stays in the crates that answer for it."""
    for source in sources:
        if source.suffix == ".rs" and not source.path.startswith(MAY_HOLD_UNSAFE):
            for number, line in enumerate(code_lines(source.text).splitlines(), 1):
                if re.search(r"\bunsafe\b", line):
                    yield f"{source.path}:{number}: unsafe outside {' and '.join(MAY_HOLD_UNSAFE)}"


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


def check_dead_python_files(sources: list[Source]) -> Findings:
    """Every module of the package is imported by something, or run by name."""
    # The binding imports helpers by name, from Rust.
    suffixes = (".py", ".pyi", ".toml", ".rs")
    everything = "\n".join(source.text for source in sources if source.suffix in suffixes)
    everything += "\n".join(source.text for source in sources if source.path == "Makefile")
    for source in sources:
        match = re.match(r"python/(headrace/.+)\.pyi?$", source.path)
        if match is None or match[1].endswith(("__init__", "__main__")):
            continue
        parent, _, name = match[1].replace("/", ".").rpartition(".")
        used = rf"{re.escape(parent)}\.{name}\b|from {re.escape(parent)} import [^\n]*\b{name}\b|\"{name}\""
        if not re.search(used, everything) and not re.search(
            rf"from {re.escape(parent)} import \([^)]*\b{name}\b", everything
        ):
            yield f"{source.path}: nothing imports it"


def check_unused_names(sources: list[Source]) -> Findings:
    """What a module makes, or a crate offers, stands somewhere else too: in other code, in a test or in a document."""
    seen = Counter(word for source in sources for word in re.findall(r"\w+", source.text))
    for source in sources:
        if source.path.startswith("tests/") or "/tests" in source.path:
            continue
        made = {".py": _python_names, ".rs": _rust_offers}.get(source.suffix)
        for name in made(source.text) if made else ():
            if seen[name] == 1:
                yield f"{source.path}: nothing uses {name}"


def _python_names(text: str) -> Iterator[str]:
    """Of classes, functions and constants; a decorator may hand what it decorates to others."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.decorator_list:
                yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _rust_offers(text: str) -> Iterator[str]:
    public = (
        r"^\s*pub(?:\([a-z]+\))? (?:const |async |unsafe )*(?:fn|const|struct|enum|static|type|trait) (\w+)"
    )
    yield from re.findall(public, code_lines(text), flags=re.MULTILINE)


def check_crate_layers(sources: list[Source]) -> Findings:
    """A crate uses only the crates below it."""
    for source in sources:
        match = re.match(r"crates/(\w+)/Cargo\.toml$", source.path)
        if match is None:
            continue
        # Tests may reach further than the code they test.
        dependencies = source.text.partition("[dependencies]")[2].partition("\n[")[0]
        for used in re.findall(r"^headrace-(\w+)", dependencies, flags=re.MULTILINE):
            if used not in CRATE_MAY_USE.get(match[1], set()):
                yield f"{source.path}: {match[1]} must not use {used}"


def check_python_layers(sources: list[Source]) -> Findings:
    """A room of the Python package uses only the rooms below it, and modules form no circle."""
    imports = python_imports(sources)
    for module, used in sorted(imports.items()):
        room = python_room(module)
        if room not in PYTHON_MAY_USE:
            yield f"{module}: the room {room} is not in PYTHON_MAY_USE"
            continue
        for other in sorted(used):
            below = python_room(other)
            if below not in (room, "base", *PYTHON_MAY_USE[room]) and (module, other) not in PYTHON_WAYS_BACK:
                yield f"{module}: {room} must not use {below}: it imports {other}"
    upwards = {
        module: sorted(other for other in used if (module, other) not in PYTHON_WAYS_BACK)
        for module, used in imports.items()
    }
    circle = first_circle(upwards)
    if circle:
        yield f"{circle[0]}: a circle of imports: {' -> '.join([*circle, circle[0]])}"


def python_room(module: str) -> str:
    """The room of a module: its folder, and in archive and cluster the folder below."""
    if module == "headrace._core":
        return "core"
    parts = module.split(".")
    if module in PYTHON_ROOMS:
        return PYTHON_ROOMS[module]
    if parts[1] in ("archive", "cluster") and len(parts) > 2:
        if parts[1] == "cluster" and parts[2] in CLUSTER_FILES:
            return "cluster.files"
        if ".".join(parts[1:3]) in PYTHON_MAY_USE:
            return ".".join(parts[1:3])
    return parts[1] if len(parts) > 2 or parts[1] in PYTHON_MAY_USE else "base"


def python_imports(sources: list[Source]) -> dict[str, set[str]]:
    """Which modules of the package each of them imports, wherever in it, and for annotations alone as well."""
    texts = {}
    for source in sources:
        match = re.match(r"python/(headrace(?:/.+)?)\.pyi?$", source.path)
        if match is not None:
            texts[match[1].replace("/", ".").removesuffix(".__init__")] = source.text
    found: dict[str, set[str]] = {module: set() for module in texts}
    for module, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                found[module].update(name if name in texts else node.module for name in names)
            elif isinstance(node, ast.Import):
                found[module].update(alias.name for alias in node.names)
    return {module: {one for one in used if one in texts} - {module} for module, used in found.items()}


def first_circle(graph: dict[str, list[str]]) -> list[str]:
    """The nodes of a circle, if the graph has one."""
    done: set[str] = set()

    def look(node: str, path: list[str]) -> list[str]:
        if node in path:
            return path[path.index(node) :]
        if node in done:
            return []
        for other in graph.get(node, []):
            found = look(other, [*path, node])
            if found:
                return found
        done.add(node)
        return []

    return next((found for node in sorted(graph) if (found := look(node, []))), [])


def check_rust_circles(sources: list[Source]) -> Findings:
    """The files of a crate form no circle; see `rust_imports`."""
    for crate in CRATE_MAY_USE:
        circle = first_circle(rust_imports(sources, crate))
        if circle:
            yield f"{circle[0]}: a circle of imports: {' -> '.join([*circle, circle[0]])}"


def rust_imports(sources: list[Source], crate: str) -> dict[str, list[str]]:
    """Which files of a crate each of them names, tests left out.

    A name counts for the file that defines it: a file that only hands it on (`pub use`) is not tied by that.
    """
    modules = rust_modules(sources, crate)
    handed_on = {module: dict(_rust_names(text)) for module, (_, text) in modules.items()}
    found = {}
    for module, (path, text) in modules.items():
        names = _rust_paths(modules, module, text)
        used = {_defining_module(modules, handed_on, module, name) for name in names}
        found[path] = sorted(modules[other][0] for other in used if other is not None and other != module)
    return found


RustPath = tuple[str, ...]


def rust_modules(sources: list[Source], crate: str) -> dict[RustPath, tuple[str, str]]:
    """The modules of a crate, each with its file and its code."""
    modules = {}
    for source in sources:
        match = re.match(rf"crates/{crate}/src/(?!bin/)(.+)\.rs$", source.path)
        if match is None or re.search(r"\btests\b", match[1]):
            continue
        path = tuple(part for part in match[1].split("/") if part not in ("mod", "lib"))
        modules[path] = (source.path, code_lines(source.text.partition("#[cfg(test)]\nmod tests {")[0]))
    return modules


USE = re.compile(r"^\s*(pub(?:\([\w ]+\))?\s+)?use\s+([^;]+);", re.M)


def _rust_names(text: str) -> Iterator[tuple[str, RustPath]]:
    """Each name that a `use` brings, and what it stands for."""
    for match in USE.finditer(text):
        yield from _use_tree(match[2], ())


def _use_tree(tree: str, prefix: RustPath) -> Iterator[tuple[str, RustPath]]:
    head, brace, rest = tree.strip().partition("{")
    if brace:
        prefix += tuple(part for part in re.split(r"\s*::\s*", head.strip()) if part)
        for branch in _branches(rest.rpartition("}")[0]):
            yield from _use_tree(branch, prefix)
    elif head:
        path, _, alias = head.partition(" as ")
        whole = prefix + tuple(re.split(r"\s*::\s*", path.strip()))
        yield alias.strip() or whole[-1], whole


def _branches(text: str) -> Iterator[str]:
    """What stands between the commas of a group, groups in it kept whole."""
    depth, start = 0, 0
    for index, letter in enumerate(text):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _rust_paths(modules: dict[RustPath, tuple[str, str]], module: RustPath, text: str) -> Iterator[RustPath]:
    """The paths that a module's code names, other than those it hands on."""
    for match in USE.finditer(text):
        if match[1] is None:
            yield from (path for _, path in _use_tree(match[2], ()))
    children = {path[-1] for path in modules if path and path[:-1] == module}
    for match in re.finditer(r"(?<![\w:])(?:\w+::)+\w+", USE.sub("", text)):
        path = tuple(match[0].split("::"))
        if path[0] in ("crate", "self", "super") or path[0] in children:
            yield path


def _defining_module(
    modules: dict[RustPath, tuple[str, str]],
    handed_on: dict[RustPath, dict[str, RustPath]],
    module: RustPath,
    path: RustPath,
) -> RustPath | None:
    """The module of the crate that defines what `path` names in `module`; none when another crate does."""
    for _ in range(len(modules)):
        if path[0] == "crate":
            whole = path[1:]
        elif path[0] in ("self", "super"):
            ups = path.count("super")
            whole = module[: len(module) - ups] + path[max(ups, 1) :]
        elif (*module, path[0]) in modules:
            whole = module + path
        else:
            return None
        depth = max(length for length in range(len(whole) + 1) if whole[:length] in modules)
        module, rest = whole[:depth], whole[depth:]
        if not rest or rest[0] not in handed_on[module]:
            return module
        path = handed_on[module][rest[0]] + rest[1:]
    return module


def check_hidden_sources(sources: list[Source]) -> Findings:
    """Time and chance are arguments in what runs under a seed."""
    for source in sources:
        if not re.match(r"crates/(?:protocol|driver|client|sim)/src/(?!bin/)", source.path):
            continue
        if source.path in MAY_ASK_THE_MACHINE or "/tests" in source.path:
            continue
        code = code_lines(source.text.partition("#[cfg(test)]")[0])
        for number, line in enumerate(code.splitlines(), 1):
            if HIDDEN_SOURCES.search(line):
                yield f"{source.path}:{number}: asks the machine for time or chance: {line.strip()[:80]}"


def check_python_hidden_sources(sources: list[Source]) -> Findings:
    """The same in Python: a clock and a generator are arguments."""
    for source in sources:
        if not re.match(r"python/headrace/.*\.py$", source.path) or source.path.startswith(
            PYTHON_MAY_ASK_THE_MACHINE
        ):
            continue
        for node in ast.walk(ast.parse(source.text)):
            for module, name in _names_used(node):
                hidden = PYTHON_HIDDEN_SOURCES.get(module, set())
                if (hidden is None or name in hidden) and (module, name) not in PYTHON_SEEDED:
                    text = f"asks the machine for time or chance: {module}.{name}"
                    yield f"{source.path}:{node.lineno}: {text}"  # type: ignore[attr-defined]


def _names_used(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The module, or class, and the name in it that a node uses: of `time.sleep`, or of `from time import sleep`."""
    if isinstance(node, ast.Attribute):
        owner = node.value
        if isinstance(owner, ast.Name):
            yield owner.id, node.attr
        elif ast.unparse(owner) in ("datetime.datetime", "datetime.date"):
            yield ast.unparse(owner).partition(".")[2], node.attr
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            yield node.module, alias.name


def check_core_imports(sources: list[Source]) -> Findings:
    """Only the wrappers touch the extension module."""
    pattern = re.compile(
        r"^\s*(?:from headrace\._core\b|import headrace\._core\b|from headrace import .*\b_core\b)", re.M
    )
    for source in sources:
        if (
            source.suffix == ".py"
            and not source.path.startswith(MAY_IMPORT_CORE)
            and pattern.search(source.text)
        ):
            yield f"{source.path}: imports headrace._core; only {', '.join(MAY_IMPORT_CORE)} may"


def check_pictures(sources: list[Source]) -> Findings:
    """A picture that is drawn from a text is drawn from that text as it is now."""
    texts = {source.path: source.text for source in sources}
    for path, text in texts.items():
        if path.endswith(".dot"):
            drawn = texts.get(path.removesuffix(".dot") + ".svg", "")
            if hashlib.sha256(text.encode()).hexdigest() not in drawn.partition("\n")[0]:
                yield f"{path}: its picture is older than it or missing: run `make pictures`"


def outgrown(sources: list[Source]) -> dict[str, int]:
    """Files and functions longer than their limit, with their length in lines."""
    lengths: dict[str, int] = {}
    for source in sources:
        measure = {".py": _python_functions, ".rs": _rust_functions}.get(source.suffix)
        if measure is None:
            continue
        length = source.text.count("\n")
        # What a script makes is as long as the tables that it is made from, and read in them.
        if length > FILE_LENGTH_MAX and MADE_BY_A_SCRIPT not in source.text[:400]:
            lengths[source.path] = length
        for name, length in measure(source.text):
            key = f"{source.path}::{name}"
            if length > FUNCTION_LENGTH_MAX:
                lengths[key] = max(length, lengths.get(key, 0))
    return lengths


def _python_functions(text: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield node.name, length - (ast.get_docstring(node) or "").count("\n")


def _rust_functions(text: str) -> Iterator[tuple[str, int]]:
    code = code_lines(text)
    for match in re.finditer(r"\bfn\s+(\w+)", code):
        body = re.search(r"[{;]", code[match.end() :])
        if body is None or body[0] == ";":
            continue
        start = match.end() + body.start()
        depth = 0
        for end in range(start, len(code)):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            if depth == 0:
                yield match[1], code.count("\n", match.start(), end) + 1
                break


def compare_with_ratchet(found: dict[str, int], recorded: dict[str, int]) -> Findings:
    """Longer than recorded is a finding, and so is a record of something that is long no more."""
    for key, length in sorted(found.items()):
        limit = FUNCTION_LENGTH_MAX if "::" in key else FILE_LENGTH_MAX
        allowed = recorded.get(key, limit)
        if length > allowed:
            yield f"{key}: {length} lines; at most {allowed}"
    for key in sorted(recorded.keys() - found.keys()):
        yield f"{key}: recorded as too long and is not; run scripts/tidy.py --record"


CHECKS: tuple[Check, ...] = (
    check_unsafe,
    check_markers,
    check_registry_hosts,
    check_machine_paths,
    check_dead_rust_files,
    check_test_places,
    check_dead_python_files,
    check_unused_names,
    check_crate_layers,
    check_python_layers,
    check_rust_circles,
    check_hidden_sources,
    check_python_hidden_sources,
    check_core_imports,
    check_pictures,
)


def main(arguments: list[str]) -> int:
    """Exit status 1 if anything was found."""
    sources = tracked_sources(ROOT)
    if len(sources) < SOURCES_MIN:
        print(
            f"tidy: only {len(sources)} sources found under {ROOT}; a check of nothing proves nothing",
            file=sys.stderr,
        )
        return 1
    lengths = outgrown(sources)
    recorded: dict[str, int] = json.loads((ROOT / RATCHET).read_text()) if (ROOT / RATCHET).exists() else {}
    if arguments == ["--record"]:
        # Only downwards: a function that newly outgrows the limit is split, or entered by hand where all can
        # see it.
        kept = {
            key: min(allowed, lengths[key]) for key, allowed in sorted(recorded.items()) if key in lengths
        }
        (ROOT / RATCHET).write_text(json.dumps(kept, indent=2) + "\n")
        return 0
    findings = [finding for check in CHECKS for finding in check(sources)]
    findings.extend(compare_with_ratchet(lengths, recorded))
    for finding in findings:
        print(finding)
    print(f"tidy: {len(sources)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
