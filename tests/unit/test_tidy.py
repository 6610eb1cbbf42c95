"""The house rules' checker finds what it should, and nothing in good sources."""

from __future__ import annotations

import hashlib
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
    ("check_unsafe", "crates/driver/src/lib.rs", "fn a() { unsafe { b() } }", "// unsafe\nlet a = \"unsafe\";"),
    ("check_unsafe", "crates/python/src/lib.rs", "unsafe fn a() {}", "#![forbid(unsafe_code)]"),
    ("check_markers", "a.py", f"x = 1  # {LATER} later", "x = 1  # to do so is fine"),
    ("check_registry_hosts", "docs/a.md", "see py" + "pi.org", "see the registry"),
    ("check_machine_paths", "a.sh", "cd /ho" + "me/me/x", "cd /dev/shm/x; a/home/b"),
    ("check_dead_rust_files", "crates/sys/src/lost.rs", "", None),
    ("check_test_places", "crates/sys/src/a.rs", TESTS + "\n" * 300, TESTS + "\n" * 200 + "}"),
    ("check_dead_python_files", "python/headrace/lost.py", "", None),
    ("check_unused_names", "python/headrace/a.py", "LIMIT = 1", "LIMIT = 1\nprint(LIMIT)"),
    ("check_unused_names", "python/headrace/b.py", "def lost() -> None: ...", "@register\ndef found() -> None: ..."),
    ("check_unused_names", "crates/sys/src/a.rs", "    pub(crate) const fn lost() {}", "fn lost() {}"),
    ("check_crate_layers", "crates/protocol/Cargo.toml", "[dependencies]\nheadrace-driver = 1", "[dependencies]\n"),
    ("check_hidden_sources", "crates/client/src/a.rs", "fastrand::u8(..);", "#[cfg(test)]\nthread::sleep(x);"),
    ("check_python_hidden_sources", "python/headrace/archive/a.py", "import time\ntime.sleep(1)", "clock.sleep(1)"),
    ("check_python_hidden_sources", "python/headrace/a.py", "from time import monotonic", "from time import gmtime"),
    ("check_python_hidden_sources", "python/headrace/b.py", "datetime.datetime.now()", "random.Random(7).random()"),
    ("check_core_imports", "python/headrace/cli/a.py", "from headrace._core import X", "from headrace import Client"),
    ("check_pictures", "docs/images/a.dot", "digraph {}", None),
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


def layers(tidy: ModuleType, **texts: str) -> list[str]:
    """What is found in modules of the package, given by path with __ for a slash."""
    sources = {f"python/headrace/{name.replace('__', '/')}.py": text for name, text in texts.items()}
    return list(tidy.check_python_layers([tidy.Source(*source) for source in sources.items()]))


def test_a_python_room_uses_only_the_rooms_below_it(tidy: ModuleType) -> None:
    """Also for annotations alone, inside a function, and by any way of importing."""
    catalog, base = {"archive__files__catalog": ""}, {"positions": ""}
    for text in (
        "from headrace.archive.files.catalog import Catalog",
        "from headrace.archive.files import catalog",
        "import headrace.archive.files.catalog",
        "if TYPE_CHECKING:\n    from headrace.archive.files.catalog import Catalog",
        "def late():\n    from headrace.archive.files.catalog import Catalog",
    ):
        assert layers(tidy, archive__server__server=text, **catalog) == []
        for room in (
            "archive__client__session",
            "archive__protocol__codes",
            "client__a",
            "tools__a",
            "clock",
        ):
            (finding,) = layers(tidy, **{room: text}, **catalog)
            assert "must not use archive.files" in finding
    assert layers(tidy, clock="from headrace.positions import align", **base) == []
    (finding,) = layers(tidy, cellar__a="")
    assert "the room cellar is not in PYTHON_MAY_USE" in finding


def test_python_modules_form_no_circle(tidy: ModuleType) -> None:
    texts = {"tools__a": "from headrace.tools.b import x", "tools__b": "from headrace.tools import c"}
    assert layers(tidy, **texts, tools__c="") == []
    (finding,) = layers(tidy, **texts, tools__c="def late():\n    from headrace.tools.a import y")
    assert "headrace.tools.a -> headrace.tools.b -> headrace.tools.c -> headrace.tools.a" in finding


def test_the_layers_of_this_repository_are_looked_at(tidy: ModuleType) -> None:
    imports = tidy.python_imports(tidy.tracked_sources(tidy.ROOT))
    assert sum(map(len, imports.values())) > 300
    rooms = {tidy.python_room(module) for module in imports}
    assert rooms - {"base"} == tidy.PYTHON_MAY_USE.keys() - {"base"}
    assert all(used in imports[module] for module, used in tidy.PYTHON_WAYS_BACK)


def circles(tidy: ModuleType, **texts: str) -> list[str]:
    """What is found in files of a crate, given by path with __ for a slash."""
    sources = {f"crates/driver/src/{name.replace('__', '/')}.rs": text for name, text in texts.items()}
    return list(tidy.check_rust_circles([tidy.Source(*source) for source in sources.items()]))


def test_rust_files_form_no_circle(tidy: ModuleType) -> None:
    """By any way of naming: through a group, another name, a path in the code, a parent or one that hands on."""
    house = {
        "lib": "mod a;",
        "a__mod": "mod b;\nmod c;\npub use b::{Bee, Other as Wasp};",
        "a__b": "pub struct Bee;",
    }
    assert circles(tidy, **house, a__c="use super::Bee;") == []
    for back in (
        "use super::c::Sea;",
        "use crate::a::{b, c::{self, Sea}};",
        "use super::c as sea;",
        "fn f() -> super::c::Sea {}",
        "fn f() { crate::a::c::sail() }",
    ):
        for forth in ("use super::Bee;", "use super::{Wasp as Fly};", "use crate::a::Bee;"):
            (finding,) = circles(tidy, **{**house, "a__b": back}, a__c=forth)
            assert (
                "crates/driver/src/a/b.rs -> crates/driver/src/a/c.rs -> crates/driver/src/a/b.rs" in finding
            )
    # What is defined in the parent ties to the parent; a test may name anything, and so may a comment.
    house["a__mod"] = "mod b;\nuse b::Bee;\npub struct Own;"
    (finding,) = circles(tidy, **{**house, "a__b": "use super::Own;"})
    assert "a/b.rs -> crates/driver/src/a/mod.rs" in finding
    test = "#[cfg(test)]\nmod tests {\n    use super::super::Own;\n}"
    assert circles(tidy, **{**house, "a__b": f"// see super::Own\n{test}"}) == []


def test_the_files_of_the_crates_are_looked_at(tidy: ModuleType) -> None:
    sources = tidy.tracked_sources(tidy.ROOT)
    for crate, ties in (("driver", 250), ("client", 70), ("python", 100)):
        assert sum(map(len, tidy.rust_imports(sources, crate).values())) > ties


def test_a_picture_of_its_text_is_up_to_date(tidy: ModuleType) -> None:
    digest = hashlib.sha256(b"digraph {}").hexdigest()
    sources = {"a.dot": "digraph {}", "a.svg": f"<!-- sha256 of a.dot: {digest} -->\n<svg/>"}
    assert list(tidy.check_pictures([tidy.Source(*source) for source in sources.items()])) == []


def test_files_that_are_reached_are_not_dead(tidy: ModuleType) -> None:
    rust = {
        "crates/a/src/lib.rs": "mod one;\npub mod two;",
        "crates/a/src/one.rs": "",
        "crates/a/src/two/mod.rs": "mod three;",
        "crates/a/src/two/three.rs": "",
    }
    assert list(tidy.check_dead_rust_files([tidy.Source(path, text) for path, text in rust.items()])) == []
    python = {
        "python/headrace/__init__.py": "from headrace.used import x\nfrom headrace import other",
        "python/headrace/used.py": "",
        "python/headrace/other.py": "",
    }
    assert (
        list(tidy.check_dead_python_files([tidy.Source(path, text) for path, text in python.items()])) == []
    )


def test_function_lengths_are_counted_in_both_languages(tidy: ModuleType) -> None:
    body = "    x = 1\n" * 80
    python = tidy.Source("a.py", f"def long():\n{body}\ndef short():\n    pass\n")
    rust = tidy.Source(
        "b.rs", "fn long() {\n" + '    let a = "}";\n' * 80 + "}\nfn short() { }\ntrait T { fn none(); }\n"
    )
    assert tidy.outgrown([python, rust]) == {"a.py::long": 81, "b.rs::long": 82}


def test_a_long_docstring_does_not_make_a_function_long(tidy: ModuleType) -> None:
    text = 'def documented():\n    """One.' + "\n" * 80 + '    """\n'
    assert tidy.outgrown([tidy.Source("a.py", text + "    return 1\n")]) == {}


def test_files_have_a_length_too(tidy: ModuleType) -> None:
    assert tidy.outgrown([tidy.Source("a.rs", "\n" * 700)]) == {}
    assert tidy.outgrown([tidy.Source("a.rs", "\n" * 701)]) == {"a.rs": 701}
    made = '"""Made by `scripts/settings.py`; do not edit."""'
    assert tidy.outgrown([tidy.Source("a.py", made + "\n" * 701)]) == {}


def test_the_ratchet_only_turns_one_way(tidy: ModuleType) -> None:
    recorded = {"a::f": 80}
    assert list(tidy.compare_with_ratchet({"a::f": 80}, recorded)) == []
    assert len(list(tidy.compare_with_ratchet({"a::f": 81}, recorded))) == 1
    assert list(tidy.compare_with_ratchet({"a::f": 75}, recorded)) == []
    assert len(list(tidy.compare_with_ratchet({}, recorded))) == 1
    assert len(list(tidy.compare_with_ratchet({"a::g": 71, "a::f": 80}, recorded))) == 1


def test_the_sources_of_this_repository_are_found(tidy: ModuleType) -> None:
    assert len(tidy.tracked_sources(tidy.ROOT)) > tidy.SOURCES_MIN
