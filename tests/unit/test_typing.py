"""What a type checker makes of the public API, seen from a user's program."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import headrace
from tests.helpers import TIMEOUT_S

PROGRAM = Path(__file__).parents[1] / "typed" / "program.py"

BEGINNING = (
    "from headrace import connect",
    "from headrace.cluster import *",
    "from headrace.cluster.aio import AsyncClusterClient",
    "from headrace.cluster.objects import AsyncObjectClient, command",
    "",
    "service = ClusteredService()",
    "class Sum:",
    "    @command",
    "    def add(self, amount: int) -> int: return amount",
    "def mistaken(node: ClusterNode, cluster: Cluster, far: AsyncClusterClient, sums: AsyncObjectClient[Sum]) -> None:",
)
_INSTEAD = 'incompatible type "str"; expected "int'
# Each with what a type checker says of it.
MISTAKES = (
    ('connect().add_publication("aeron:ipc", "10")', _INSTEAD),
    ('ConsensusModule(cluster_id="0")', _INSTEAD),
    ('ServiceContainer(service, service_id="0")', _INSTEAD),
    ('ClusterNode(service, directory="d", session_timeout_ns="1s")', _INSTEAD),
    ('ClusterNode.embedded(service, max_sessions="1")', _INSTEAD),
    ('ClusterClient.connect(egress_stream_id="1")', _INSTEAD),
    ("ClusterClient.connect().offer(5)", 'incompatible type "int"; expected "Buffer'),
    ('ClusterClient.connect().offer_blocking("text")', 'incompatible type "str"; expected "Buffer'),
    ('cluster.offer("text")', 'incompatible type "str"; expected "Buffer'),
    ('far.offer_async("text")', 'incompatible type "str"; expected "Buffer'),
    ("ClusterClient.connect().receive(timeout_s=1).payload", 'Item "None" of "ClusterMessage | None"'),
    ('sums.call(Sum.add, "1")', _INSTEAD),
    ("sums.call(str.upper)", "incompatible type"),
    ("sums.object.add(1) + 1", "Coroutine[Any, Any, Any]"),
)
DOCUMENTS = Path(__file__).parents[2]
TUTORIAL = ("counter.py", "first.py", "node.py", "client.py", "snapshot.py")
"""The programs of the tutorial, which import each other."""
PAGES = ("write-a-service", "check-determinism", "replicated-objects", "change-a-services-version")
"""Pages whose programs go on from one to the next."""


def check(program: Path, cache: Path, *others: Path) -> subprocess.CompletedProcess[str]:
    # Away from the project, whose settings a user does not have.
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-error-summary",
            "--cache-dir",
            str(cache),
            *map(str, (program, *others)),
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=cache,
        check=False,
    )


@pytest.mark.slow
def test_a_users_program_passes_strictly_and_its_mistakes_do_not(tmp_path: Path):
    assert (Path(headrace.__file__).parent / "py.typed").exists()
    checked = check(PROGRAM, tmp_path)
    assert (checked.returncode, checked.stdout) == (0, "")
    mistaken = tmp_path / "mistaken.py"
    mistaken.write_text("\n".join((*BEGINNING, *(f"    {line}" for line, _ in MISTAKES), "")))
    checked = check(mistaken, tmp_path)
    assert checked.returncode == 1
    told = {int(line.split(":")[1]): line for line in checked.stdout.splitlines() if " error: " in line}
    assert sorted(told) == [len(BEGINNING) + number for number in range(1, len(MISTAKES) + 1)]
    for (_, words), line in zip(MISTAKES, told.values(), strict=True):
        assert words in line


@pytest.mark.slow
def test_the_programs_of_the_documents_of_a_cluster_pass_strictly(tmp_path: Path):
    def programs(name: str) -> list[str]:
        return re.findall(r"```python\n(.*?)```", (DOCUMENTS / name).read_text(), flags=re.DOTALL)

    sources = dict(zip(TUTORIAL, programs("docs/user/tutorial-cluster.md"), strict=True))
    (sources["readme.py"],) = [text for text in programs("README.md") if "ClusterNode" in text]
    for page in PAGES:
        sources[f"{page.replace('-', '_')}.py"] = "".join(programs(f"docs/user/how-to/{page}.md"))
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    examples = sorted((DOCUMENTS / "examples").glob("cluster_*.py"))
    assert len(examples) == 3
    checked = check(*examples[:1], tmp_path, *examples[1:], *(tmp_path / name for name in sources))
    assert (checked.returncode, checked.stdout) == (0, "")


def test_the_claims_of_the_documents_pass_strictly_and_under_back_pressure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DOCUMENTS / "docs/user/how-to/zero-copy.md").read_text()
    tried, waited = (
        block
        for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
        if "_claim" in block or "claim_" in block
    )
    program = tmp_path / "claims.py"
    body = textwrap.indent(tried + waited, "    ")
    program.write_text(f"import headrace\n\ndef send(publication: headrace.Publication) -> None:\n{body}")
    checked = check(program, tmp_path)
    assert (checked.returncode, checked.stdout) == (0, "")
    with headrace.MediaDriver.embedded() as driver, driver.connect() as client:
        publication = client.add_publication("aeron:ipc", 1001)
        exec(tried, {"publication": publication})
        assert capsys.readouterr().out == "not sent: NOT_CONNECTED\n"
        with client.add_subscription("aeron:ipc", 1001) as subscription:
            exec(waited, {"publication": publication})
            exec(tried, {"publication": publication})
            heads = [subscription.receive(timeout_s=TIMEOUT_S) for _ in range(2)]
            assert [bytes(head.payload[:4]) for head in heads if head is not None] == [b"head"] * 2
