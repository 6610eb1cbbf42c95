"""What the documents promise: code that runs, links that lead somewhere, tables that are complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from benches.processes import ROOT

from headrace.cli.app import SUBCOMMANDS
from tests.system.processes import TIMEOUT_S

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])
RUNNABLE = [("README.md", 0), ("docs/user/tutorial.md", 0)]


def test_there_are_documents() -> None:
    assert len(DOCUMENTS) > 15


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (document.parent / target).exists(), target


@pytest.mark.system
@pytest.mark.parametrize(("name", "index"), RUNNABLE)
def test_the_first_program_of_a_document_runs(name: str, index: int) -> None:
    programs = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", programs[index]],
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"hello" in done.stdout


@pytest.mark.system
def test_the_cluster_of_the_readme_counts_on(tmp_path: Path) -> None:
    (program,) = [
        text
        for text in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
        if "ClusterNode" in text
    ]
    for total in (b"b'5'\n", b"b'10'\n"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            cwd=tmp_path,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert (done.stdout, done.returncode) == (total, 0), done.stderr.decode()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_in_documents_is_python(document: Path) -> None:
    for program in re.findall(r"```python\n(.*?)```", document.read_text(), flags=re.DOTALL):
        compile(program, str(document), "exec")


def test_what_the_documents_tell_to_make_can_be_made() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {
        (name, path.name)
        for path in DOCUMENTS
        if "design" not in path.parts
        for name in re.findall(r"(?:`|^)make ([a-z-]+)[ `\n]", path.read_text(), flags=re.MULTILINE)
    }
    assert ("wheel", "README.md") in named
    assert {each for each in named if each[0] not in targets} == set()


def test_what_the_makefile_runs_is_there() -> None:
    scripts = re.findall(r"\b(?:scripts|examples)/[\w./]+", (ROOT / "Makefile").read_text())
    assert len(scripts) > 5
    assert [each for each in scripts if not (ROOT / each).exists()] == []


def test_the_readme_names_every_extra_and_commands_that_exist() -> None:
    text = (ROOT / "README.md").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    # `demo` is for `make demo`, which installs it.
    assert [name for name in extras if f"`{name}`" not in text and name != "demo"] == []
    commands = re.findall(r"(?:`|^)headrace ([a-z]+(?: \| [a-z]+)*)", text, flags=re.MULTILINE)
    named = {name for command in commands for name in command.split(" | ")}
    assert named >= {"stat", "errors", "driver"}
    assert named <= set(SUBCOMMANDS)


def test_the_command_line_reference_names_every_command() -> None:
    text = (ROOT / "docs/reference/command-line.md").read_text()
    assert [name for name in SUBCOMMANDS if f"`{name}`" not in text] == []


def test_the_tests_that_the_guarantees_name_exist_in_each_section() -> None:
    """A name is below `tests`, or begins with `crates`."""
    promises, _, untested = (ROOT / "docs/user/guarantees.md").read_text().partition("\n## Not tested\n")
    sections = promises.split("\n## ")[1:]
    assert untested
    assert len(sections) > 4
    for section in sections:
        named = re.findall(r"`((?:\w+/)+\w+\.(?:py|rs))`", section)
        assert named, section.partition("\n")[0]
        for name in named:
            assert (ROOT / ("" if name.startswith("crates/") else "tests") / name).is_file(), name


def test_the_source_files_that_the_internals_name_exist() -> None:
    """A page may leave out the folders that its reader knows."""
    sources = [
        path
        for folder in ("crates", "python", "scripts", "tests", "benches")
        for path in (ROOT / folder).rglob("*.*")
    ]
    ends = {"/".join(path.parts[start:]) for path in sources for start in range(-8, 0)}
    named = {
        (page.name, name)
        for page in (ROOT / "docs/internals").glob("*.md")
        for name in re.findall(r"(?:`|^)([\w/]+\.(?:py|rs))\b", page.read_text(), flags=re.MULTILINE)
    }
    assert len(named) > 200
    assert {each for each in named if each[1] not in ends} == set()


def test_the_changelog_knows_this_version() -> None:
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), flags=re.MULTILINE)
    assert version is not None
    assert re.search(
        rf"^## {re.escape(version[1])}\b", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE
    )


@pytest.mark.system
@pytest.mark.parametrize("script", ["settings", "states"])
def test_what_is_made_from_declarations_is_up_to_date(script: str) -> None:
    command = [sys.executable, ROOT / f"scripts/{script}.py", "--check"]
    # The environment must not become the documented default.
    environment = {**os.environ, "AERON_MTU_LENGTH": "8k"}
    checked = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment)
    assert checked.returncode == 0, checked.stdout + checked.stderr


# In a process of its own: the script changes the names of the classes it documents.
REFERENCE = """
import runpy, sys
from pathlib import Path
script = runpy.run_path(sys.argv[1])
modules = script["documented_modules"]()
for module in modules.values():
    for owner in module.classes:
        for member in owner.own_members:
            if not member.name.startswith("_") and not member.docstring and member.kind == "function":
                print(member.fullname)
script["write_reference"](Path(sys.argv[2]))
"""


@pytest.mark.system
@pytest.mark.slow
def test_the_reference_documents_every_public_method(tmp_path: Path) -> None:
    made = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            REFERENCE,
            str(ROOT / "scripts/api_reference.py"),
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout == ""
    page = (tmp_path / "headrace.html").read_text()
    assert "offer_blocking" in page
    assert "Subscribers have not made room yet" in page
