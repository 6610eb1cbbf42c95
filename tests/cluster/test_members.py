"""The lists that name the members of a cluster."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from headrace import ConfigError
from headrace.cluster import ConsensusModuleConfig
from headrace.cluster.common.members import member_here, members_text, parse_members, single_member


def plan(member_id: int, host: str, base: int) -> str:
    ports = (
        f"{host}:{base + 2}",
        f"{host}:{base + 3}",
        f"{host}:{base + 4}",
        f"{host}:0",
        f"{host}:{base + 1}",
    )
    return ",".join((str(member_id), *ports))


@pytest.mark.parametrize(
    ("hosts", "planned"),
    [
        ("alpha", [("alpha", 9000)]),
        ("alpha, beta,gamma", [("alpha", 9000), ("beta", 9100), ("gamma", 9200)]),
        ("localhost,localhost", [("localhost", 9000), ("localhost", 9100)]),
        ("alpha:7000,beta,alpha:7005", [("alpha", 7000), ("beta", 9100), ("alpha", 7005)]),
        ("10.0.0.1,[::1]:65531,[fe80::1]", [("10.0.0.1", 9000), ("[::1]", 65531), ("[fe80::1]", 9200)]),
    ],
)
def test_hosts_follow_one_port_plan(hosts: str, planned: list[tuple[str, int]]) -> None:
    text = "|".join(plan(member_id, host, base) for member_id, (host, base) in enumerate(planned))
    assert members_text(parse_members(hosts)) == text
    assert parse_members(text) == parse_members(hosts)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ("", "must be hosts, such as alpha,beta,gamma"),
        ("alpha,,gamma", "must be hosts"),
        ("alpha,9000", "must be hosts"),
        ("alpha,beta=1", "must be hosts"),
        ("alpha,beta:", "must be hosts"),
        ("alpha:0,beta", "has port 0 in 'alpha:0': must be from 1024 to 65531"),
        ("alpha:65532,beta", "has port 65532 in 'alpha:65532'"),
        ("alpha,beta,alpha", "has 'alpha' twice: .* such as alpha:9000 and alpha:9100"),
        ("alpha:9000,alpha:9001", "has alpha:9003 for member 0 and for member 1"),
        (f"{plan(3, 'a', 1)}|{plan(3, 'b', 1)}", "has member 3 twice"),
        (f"{plan(3, 'a', 1)}|{plan(4, 'a', 1)}", "has a:3 for member 3 and for member 4"),
        ("x0,localhost:9002,localhost:9003,localhost:9004,localhost:9005,localhost:8010", "for member 1 and"),
    ],
)
def test_a_wrong_list_names_what_is_wrong(members: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"^members=.*{words}"):
        parse_members(members)


def test_a_file_lists_hosts(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('members = ["alpha", "beta:7000"]\n')
    assert parse_members(file) == parse_members(str(file)) == parse_members("alpha,beta:7000")


def test_a_running_member_keeps_its_list_while_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('members = ["alpha"]\n')
    config = ConsensusModuleConfig.of(members=file, ingress_channel="aeron:udp")
    file.write_text('members = ["gamma"]\n')
    assert config.member.host == "alpha"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read: No such file"),
        ("members = [alpha]", "is not a TOML file: .*line 1"),
        ('members = ["alpha"]\nmember_id = 1', "must have one entry, a list of hosts"),
        ('members = "alpha"', "must have one entry, a list of hosts"),
        ("members = [1, 2]", "must have one entry, a list of hosts"),
        ("members = []", "must be hosts"),
        ('members = ["alpha", "beta", "alpha"]', "has 'alpha' twice"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "cluster.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=f"^members=.*{words}"):
        parse_members(file)


@pytest.mark.parametrize(
    ("name", "hosts", "member_id"),
    [
        ("beta", "alpha,beta,gamma", 1),
        ("Beta.example.org", "alpha,beta,gamma", 1),
        ("beta", "alpha.example.org,beta.example.org", 1),
        ("beta.example.org", "beta.example.net,beta.example.org", 1),
    ],
)
def test_a_member_finds_itself_by_the_name_of_its_machine(
    monkeypatch: pytest.MonkeyPatch, name: str, hosts: str, member_id: int
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    assert member_here(parse_members(hosts)).member_id == member_id


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        (
            "alpha,gamma",
            "no member has the name of this machine, 'beta': the hosts are alpha, gamma, the ids 0, 1",
        ),
        (
            "beta,beta",
            "several members have the name of this machine, 'beta': the hosts are beta, the ids 0, 1",
        ),
    ],
)
def test_a_machine_that_is_no_member_or_several_is_an_error(
    monkeypatch: pytest.MonkeyPatch, hosts: str, words: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "beta")
    with pytest.raises(ConfigError, match=f"^member_id=None: is required, as {words}"):
        member_here(parse_members(hosts))


def test_a_member_that_the_list_does_not_have_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^member_id=3: must be an id of members: 0, 1, 2"):
        single_member(parse_members("alpha,beta,gamma"), 3)
