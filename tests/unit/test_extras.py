"""What the package needs: nothing by itself; what an extra brings, with an error that names it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from headrace._base.extras import install_command
from tests.helpers import TIMEOUT_S

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

# What a stock Python does not have. A module that is None in sys.modules cannot be imported.
WITHOUT = """
import sys
for name in {missing!r}:
    sys.modules[name] = None
"""


def run(code: str, *missing: str) -> subprocess.CompletedProcess[str]:
    program = WITHOUT.format(missing=missing) + code
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def command_of(extra):
    return " ".join(["pip install", *(f"'{package}'" for package in EXTRAS[extra])])


def test_importing_the_package_loads_nothing_that_must_be_installed():
    heavy = (
        "numpy",
        "pyarrow",
        "click",
        "rich",
        "hdrh",
        "pyspark",
        "asyncio",
        "headrace.archive",
        "headrace.tools",
    )
    finished = run(f"import headrace; print([name for name in {heavy!r} if name in sys.modules])")
    assert finished.stdout.strip() == "[]", finished.stderr


def test_the_archive_and_single_messages_of_a_schema_load_no_numpy():
    code = """
import headrace.archive.aio
from headrace import sbe
assert sbe.Schema and sbe.MessageCodec
from headrace.archive.protocol import messages
print("numpy" in sys.modules)
"""
    finished = run(code)
    assert finished.stdout.strip() == "False", finished.stderr


def test_messages_flow_without_any_extra():
    code = """
import headrace
with headrace.MediaDriver.embedded() as driver, driver.connect() as client:
    subscription = client.add_subscription("aeron:ipc?term-length=64k", 10)
    publication = client.add_publication("aeron:ipc?term-length=64k", 10)
    publication.offer_blocking(b"hello")
    print(subscription.receive(timeout_s=60).payload)
    publication.offer_batch_blocking([b"one", b"two"])
    print(subscription.poll_batch().to_list())
"""
    finished = run(code, "numpy", "pyarrow", "click", "rich", "hdrh", "pandas", "pyspark")
    assert finished.stdout.split("\n")[:2] == ["b'hello'", "[b'one', b'two']"], finished.stderr


@pytest.mark.parametrize(
    ("code", "missing", "extra"),
    [
        ("from headrace.sbe import Selection", "numpy", "numpy"),
        ("import headrace.client.native", "numpy", "numpy"),
        ("from headrace.client import _batch", "numpy", "numpy"),
        ("from headrace.client import _batch; _batch.to_arrow([])", "pyarrow", "arrow"),
        ("import headrace.spark", "pyarrow", "spark"),
        ("from headrace.client import native; native.numba_signature()", "numba", "numba"),
    ],
)
def test_what_is_missing_is_named_with_the_command_that_installs_it(code: str, missing: str, extra: str):
    finished = run(code, missing)
    last = finished.stderr.strip().splitlines()[-1]
    assert last == (
        f"headrace.MissingExtraError: {missing} is not installed, which headrace[{extra}] needs: {command_of(extra)}"
    )


def test_the_command_says_what_it_needs():
    finished = run("from headrace.cli import main; main()", "click")
    assert finished.returncode == 1
    command = "pip install 'click>=8.1' 'rich>=13.7' 'textual>=6' 'hdrhistogram>=0.10' 'numpy>=1.26'"
    assert command_of("cli") == command
    assert finished.stderr == f"error: click is not installed, which headrace[cli] needs: {command}\n"


def test_a_command_installs_packages_that_an_index_has_and_no_release_of_headrace():
    assert set(EXTRAS["spark"] + EXTRAS["demo"]) == set(install_command("spark", "demo").split("'")[1::2])
    for extra in EXTRAS:
        assert install_command(extra) == command_of(extra)
        assert "headrace" not in install_command(extra)
    sources = [*ROOT.glob("python/**/*.py"), *ROOT.glob("docs/[ru]*/**/*.md"), *ROOT.glob("examples/**/*.*")]
    assert len(sources) > 150
    named = [path for path in sources if "pip install 'headrace[" in path.read_text(errors="replace")]
    assert not named, "no release is on a package index"
