"""The reference's own SBE tool against ours: bytes both ways, and the layouts of the archive's messages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benches.processes import ROOT

from headrace import sbe
from tests.golden.sbe import FOLDER, MESSAGES, ORDERS, examples, golden, market

pytestmark = [pytest.mark.interop, pytest.mark.slow]

JAVA = ROOT / "tests" / "interop" / "java" / "sbe"
ARCHIVE = ROOT / "python" / "headrace" / "archive" / "protocol" / "schemas" / "archive.xml"
OPENS = "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED"

Run = Callable[..., str]


def run(*command: object, text: str | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in command], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command[0]} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The class path of the tool; skips where Maven cannot bring it."""
    if any(shutil.which(program) is None for program in ("mvn", "javac")):
        pytest.skip("interoperability: `mvn` or `javac` is not on the PATH")
    folder = tmp_path_factory.mktemp("jars")
    fetch = [
        "mvn",
        "-q",
        "-B",
        "-f",
        JAVA / "pom.xml",
        "dependency:copy-dependencies",
        f"-DoutputDirectory={folder}",
    ]
    done = subprocess.run([str(word) for word in fetch], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"interoperability: Maven could not fetch the SBE tool: {done.stdout.strip()[:300]}")
    return os.pathsep.join(map(str, folder.glob("*.jar")))


def generate(jars: str, schema: Path, folder: Path) -> list[Path]:
    """The codecs that the tool writes for a schema."""
    run(
        "java",
        OPENS,
        f"-Dsbe.output.dir={folder}",
        "-Dsbe.xinclude.aware=true",
        "-Dsbe.validation.stop.on.error=true",
        "-cp",
        jars,
        "uk.co.real_logic.sbe.SbeTool",
        schema,
    )
    return list(folder.rglob("*.java"))


@pytest.fixture(scope="module", params=ORDERS)
def java(
    request: pytest.FixtureRequest, jars: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Run]:
    """A byte order, and the Java program compiled for it."""
    order = request.param
    folder = tmp_path_factory.mktemp(order)
    sources = generate(jars, FOLDER / f"market-{order}.xml", folder / "generated")
    program = folder / "Market.java"
    program.write_text((JAVA / "Market.java").read_text().replace("market.ORDER", f"market.{order}"))
    run("javac", "-nowarn", "-cp", jars, "-d", folder, *sources, program)

    def call(mode: str, text: str | None = None) -> str:
        return run("java", OPENS, "-cp", f"{jars}{os.pathsep}{folder}", "Market", mode, text=text)

    return order, call


def test_the_golden_bytes_are_what_java_writes(java: tuple[str, Run]) -> None:
    order, call = java
    written = dict(line.split() for line in call("golden").splitlines())
    assert {name: bytes.fromhex(text) for name, text in written.items()} == golden(order)


def test_java_reads_what_we_write(java: tuple[str, Run]) -> None:
    """Java decodes each message into values, encodes those anew, and both sides' bytes are the same."""
    order, call = java
    schema = market(order)
    sent = [(name, schema[name].encode(*values)) for name in MESSAGES for values in examples(name)]
    assert len(sent) > 2 * len(MESSAGES)
    back = call("echo", "".join(f"{name} {data.hex()}\n" for name, data in sent)).splitlines()
    assert [line.split()[0] for line in back] == [name for name, _ in sent]
    assert [bytes.fromhex(line.split()[1]) for line in back] == [data for _, data in sent]


def test_the_tool_accepts_the_archives_schemas(jars: str, tmp_path: Path) -> None:
    for schema in sorted(ARCHIVE.parent.glob("*.xml")):
        assert len(generate(jars, schema, tmp_path / schema.stem)) > 3


def our_layout(codec: sbe.MessageCodec, version: int) -> dict[str, int]:
    body: Any = codec.model.body
    found = {"template": codec.template_id}
    for field in body.fields:
        if field.since <= version:
            found[f"{field.name}EncodingOffset"] = field.offset
            found[f"{field.name}EncodingLength"] = field.size
            found[f"{field.name}SinceVersion"] = field.since
    for data in body.data:
        if data.since <= version:
            found[f"{data.name}HeaderLength"] = data.start
            found[f"{data.name}SinceVersion"] = data.since
    return found


def test_the_archives_messages_lie_as_in_the_reference(jars: str, tmp_path: Path) -> None:
    """Offset, length and version of every item of every message that the published client has."""
    run("javac", "-cp", jars, "-d", tmp_path, JAVA / "Layout.java")
    schema = sbe.Schema.from_file(ARCHIVE)
    classes = {f"io.aeron.archive.codecs.{name}Decoder": name for name in schema}
    lines = run("java", OPENS, "-cp", f"{jars}{os.pathsep}{tmp_path}", "Layout", *classes).splitlines()
    theirs: dict[str, dict[str, int]] = {}
    for line in lines:
        name, key, *value = line.split()
        if value:
            theirs.setdefault(classes[name], {})[key] = int(value[0])
    assert len(theirs) > 40
    for name, layout in theirs.items():
        version, block = layout.pop("version"), layout.pop("block")
        ours = our_layout(schema[name], version)
        assert {key: value for key, value in layout.items() if key in ours} == ours, name
        items = {re.sub(r"(EncodingOffset|HeaderLength)$", "", key) for key in layout if "Since" not in key}
        known = {item.name for item in (*schema[name].model.body.fields, *schema[name].model.body.data)}
        assert {item for item in items if not item.endswith("EncodingLength")} <= known | {"template"}, name
        assert block == schema[name].block_length or version < schema.version, name
