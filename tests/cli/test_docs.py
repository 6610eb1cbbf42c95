"""`headrace docs`: the reference in a terminal."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import headrace
from headrace.cli.app import app
from headrace.cli.docs import MODULES

ROOT = Path(__file__).parents[2]


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["docs", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_index_has_every_public_name():
    lines = {line.strip() for line in shown().splitlines()}
    assert set(headrace.__all__) <= {line.removesuffix("()") for line in lines}
    assert "ArchiveClient" in lines or "Archive" in lines


def test_every_public_package_is_in_the_reference_and_found_without_its_import():
    package = Path(headrace.__file__).parent
    sources = [
        path
        for path in package.rglob("*.py")
        if "_publish(__name__" in path.read_text() and not re.match(r"_[a-z]", path.name)
    ]
    names = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sources
    }
    assert len(names) > 10
    # A driver is shown as `headrace.MediaDriver`.
    assert names - {"headrace.driver"} <= set(MODULES)
    assert {f"headrace.{name}" for name in headrace._PACKAGES} <= set(MODULES)
    for name in names:
        importlib.import_module(name)
    assert headrace.cluster.ClusterNode.__module__ == "headrace.cluster"


def test_what_the_documents_tell_to_look_up_is_shown():
    told = {
        name
        for path in (ROOT / "docs").rglob("*.md")
        for name in re.findall(r"`headrace docs ([\w.]+)`", path.read_text())
    }
    assert len(told) >= 3
    for name in told:
        shown(name)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("headrace.cluster.ClusterNode", "class headrace.cluster.ClusterNode("),
        ("cluster.ClusteredService.on_session_message", "on_session_message("),
        ("headrace.cluster.objects.ObjectClient", "class headrace.cluster.objects.ObjectClient("),
        ("cluster.aio.AsyncClusterClient", "class headrace.cluster.aio.AsyncClusterClient"),
        # A name that one package alone has is found without the package.
        ("ClusterNode", "class headrace.cluster.ClusterNode("),
        ("ClusterNode.has_ended", "has_ended -> bool"),
    ],
)
def test_classes_of_the_cluster_are_shown(name: str, line: str):
    assert shown(name).startswith(line)


def test_a_class_lists_its_members_with_a_sentence_each():
    text = shown("Publication")
    assert text.startswith("class headrace.Publication\n")
    assert "  offer()\n      Send one message if the position limit allows it now." in text
    assert "  position\n      int | None: Stream position" in text
    assert "__enter__" not in text


@pytest.mark.parametrize(
    ("name", "member"), [("Action", "ABORT"), ("HeadraceError", ""), ("Header", "position")]
)
def test_a_class_does_not_list_what_it_has_from_python(name: str, member: str):
    text = shown(name)
    assert member in text
    for inherited in ("bit_length", "from_bytes", "with_traceback", "add_note"):
        assert inherited not in text


@pytest.mark.parametrize(
    ("name", "signature", "error"),
    [
        ("Publication.offer_blocking", "timeout_s: float | None = 5.0", "PublicationTimeoutError:"),
        (
            "headrace.Client.add_publication",
            "channel: str, stream_id: int) -> Publication",
            "RegistrationError:",
        ),
        ("aio.connect", "-> Client", "DriverTimeoutError:"),
    ],
)
def test_a_function_shows_types_results_and_errors(name: str, signature: str, error: str):
    text = shown(name)
    assert signature in text
    assert "Raises:" in text
    assert error in text


@pytest.mark.parametrize("name", ["", "archive", "Archive", "Publication.offer"])
def test_texts_have_no_marks_of_a_documentation_generator(name: str):
    text = shown(name)
    assert ":meth:" not in text
    assert ":class:" not in text
    assert "``" not in text


def test_a_package_has_its_text_and_its_names():
    text = shown("archive")
    assert "  Archive\n" in text


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("Publicaton", "did you mean Publication"),
        ("offer", "did you mean ExclusivePublication.offer, Publication.offer?"),
        ("poll", "Poller.poll, Server.poll, Subscription.poll?"),
        (
            "has_ended",
            "archive.Replay.has_ended, archive.Replication.has_ended, cluster.ClusterNode.has_ended",
        ),
        ("close_blocking", "lists all names"),
        ("_core", "lists all names"),
        ("__init__", "lists all names"),
    ],
)
def test_a_name_that_is_not_public_is_refused_with_advice(name: str, advice: str):
    result = CliRunner().invoke(app, ["docs", name])
    assert result.exit_code == 2
    assert advice in result.output
