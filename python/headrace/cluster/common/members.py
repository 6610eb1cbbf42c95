"""The members of a cluster: as people list them, and as the wire writes them. Cluster specification 1.3."""

from __future__ import annotations

import os
import re
import socket
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace._base.checks import excerpt, wrong
from headrace._base.exceptions import ConfigError
from headrace._settings.rules import Rule

__all__ = [
    "MEMBERS",
    "Member",
    "check_endpoints",
    "difference",
    "ingress_endpoints",
    "member_here",
    "members_text",
    "parse_members",
    "replaced",
    "single_member",
    "wire_members",
]

MEMBERS = Rule("text, or the path of a .toml file", lambda value: isinstance(value, str | os.PathLike))
"""What a setting may be that names members; :func:`parse_members` says more."""
_FIELDS_MIN, _FIELDS_MAX = 6, 8
_ENDPOINTS = ("ingress", "consensus", "log", "catchup", "archive")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|(?!\d+(?::|$))[^\s:|?=,\[\]]+)(?::(\d{1,5}))?")
# The port plan of Aeron's samples: member n has the ports after 9000 + 100 n.
_BASE_PORT, _PORTS_A_MEMBER = 9000, 100
_ARCHIVE, _INGRESS, _CONSENSUS, _LOG = 1, 2, 3, 4
_BASE_PORT_MIN, _BASE_PORT_MAX = 1024, 65_535 - _LOG


@dataclass(frozen=True, slots=True)
class Member:
    """One member, and its endpoints: ``host:port`` each."""

    member_id: int
    ingress_endpoint: str
    consensus_endpoint: str
    log_endpoint: str
    catchup_endpoint: str
    archive_endpoint: str
    archive_response_endpoint: str = ""
    egress_response_endpoint: str = ""

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The five endpoints that every member has."""
        return (
            self.ingress_endpoint,
            self.consensus_endpoint,
            self.log_endpoint,
            self.catchup_endpoint,
            self.archive_endpoint,
        )

    @property
    def host(self) -> str:
        """The machine, as the consensus endpoint names it."""
        return self.consensus_endpoint.rpartition(":")[0]


def parse_members(members: str | os.PathLike[str]) -> tuple[Member, ...]:
    """The members that a setting names.

    It is one of

    - ``alpha,beta,gamma``: hosts, whose ids are 0, 1 and 2. The first port of member n is 9000 + 100 n, in
      ``alpha:7000`` it is 7000. The ports that follow are for archive, ingress, consensus and log, in this order.
    - ``cluster.toml``: a file with ``members = ["alpha", "beta", "gamma"]``.
    - ``id,ingress,consensus,log,catchup,archive[,...]`` of each, as ``host:port``, separated by ``|``.

    Raises:
        ConfigError: It is none of these, or two members have the same id or endpoint.
    """
    text = os.fspath(members)
    if text.endswith(".toml"):
        text = _text_in(Path(text))
    has_ids = "|" in text or text.partition(",")[0].strip().isdigit()
    found = wire_members(text) if has_ids else _of_hosts(text)
    _check_apart(found, text)
    return found


def _text_in(path: Path) -> str:
    """The members that a file lists, as text."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise wrong("members", str(path), f"cannot be read: {failure.strerror}") from failure
    except ValueError as failure:
        raise wrong("members", str(path), f"is not a TOML file: {failure}") from failure
    match values:
        case {"members": [*hosts], **others} if not others and all(isinstance(host, str) for host in hosts):
            return ",".join(hosts)
    raise wrong(
        "members", str(path), 'must have one entry, a list of hosts: members = ["alpha", "beta", "gamma"]'
    )


def _of_hosts(text: str) -> tuple[Member, ...]:
    members, open_hosts = [], []
    for member_id, entry in enumerate(text.split(",")):
        member, is_open = _of_host(member_id, entry.strip(), text)
        members.append(member)
        if is_open:
            open_hosts.append(member.host)
    _check_named_once(open_hosts, text)
    return tuple(members)


def _of_host(member_id: int, entry: str, text: str) -> tuple[Member, bool]:
    """The member on a host, and whether its port is left open."""
    match = _HOST.fullmatch(entry)
    if match is None:
        raise _no_members(text)
    host, port = match.groups()
    base = _BASE_PORT + _PORTS_A_MEMBER * member_id if port is None else int(port)
    if not _BASE_PORT_MIN <= base <= _BASE_PORT_MAX:
        rule = f"has port {base} in {entry!r}: must be from {_BASE_PORT_MIN} to {_BASE_PORT_MAX}"
        raise wrong("members", text, f"{rule}, as a member uses the four ports after it")
    return _planned(member_id, host, base), port is None


def replaced(members: Iterable[Member], member_id: int, text: str) -> tuple[Member, ...]:
    """The members, of which one is elsewhere.

    Args:
        members: As they are.
        member_id: Which one.
        text: Its host, as :func:`parse_members` takes it, or its five endpoints or more.

    Raises:
        ConfigError: The text is neither, or another member has one of the endpoints.
    """
    text = text.strip()
    new = wire_members(f"{member_id},{text}")[0] if "," in text else _of_host(member_id, text, text)[0]
    changed = tuple(new if one.member_id == member_id else one for one in members)
    _check_apart(changed, members_text(changed))
    return changed


def _planned(member_id: int, host: str, base: int) -> Member:
    return Member(
        member_id,
        ingress_endpoint=f"{host}:{base + _INGRESS}",
        consensus_endpoint=f"{host}:{base + _CONSENSUS}",
        log_endpoint=f"{host}:{base + _LOG}",
        catchup_endpoint=f"{host}:0",
        archive_endpoint=f"{host}:{base + _ARCHIVE}",
    )


def _check_named_once(hosts: Sequence[str], text: str) -> None:
    """Refuse a host that is named twice, probably by mistake; all members on one machine are no mistake."""
    for host in hosts:
        if hosts.count(host) > 1 and len(set(hosts)) > 1:
            rule = f"has {host!r} twice: name each machine once; members that share it need ports, such as "
            raise wrong("members", text, f"{rule}{host}:9000 and {host}:9100")


def wire_members(text: str) -> tuple[Member, ...]:
    """The members that a message of a member names.

    Raises:
        ConfigError: It names none.
    """
    members = []
    for part in text.rstrip("|").split("|"):
        fields = part.split(",")
        while len(fields) > _FIELDS_MIN and not fields[-1]:
            fields.pop()
        is_member = _FIELDS_MIN <= len(fields) <= _FIELDS_MAX and fields[0].strip().isdigit()
        if not is_member or any(":" not in endpoint for endpoint in fields[1:_FIELDS_MIN]):
            raise _no_members(text)
        members.append(Member(int(fields[0]), *fields[1:]))
    return tuple(members)


def _no_members(text: str) -> ConfigError:
    return wrong(
        "members",
        excerpt(text),
        "must be hosts, such as alpha,beta,gamma or alpha:9000,beta:9000, or a .toml file that lists them, or "
        "id,ingress,consensus,log,catchup,archive for each member, as host:port, separated by |",
    )


def _check_apart(members: Iterable[Member], text: str) -> None:
    """Refuse two members with the same id, or at the same endpoint."""
    owners: dict[str, int] = {}
    seen = set()
    for member in members:
        if member.member_id in seen:
            raise wrong(
                "members", excerpt(text), f"has member {member.member_id} twice: give each its own id"
            )
        seen.add(member.member_id)
        for endpoint in member.endpoints:
            owner = owners.setdefault(endpoint, member.member_id)
            if owner != member.member_id and not endpoint.endswith(":0"):
                rule = f"has {endpoint} for member {owner} and for member {member.member_id}: give each its own ports"
                raise wrong("members", excerpt(text), rule)


def members_text(members: Iterable[Member]) -> str:
    """The members as text, as :func:`wire_members` reads it."""
    texts = []
    for one in members:
        further = [text for text in (one.archive_response_endpoint, one.egress_response_endpoint) if text]
        texts.append(",".join([str(one.member_id), *one.endpoints, *further]))
    return "|".join(texts)


def ingress_endpoints(members: Iterable[Member]) -> str:
    """The ingress endpoints, as clients receive them: ``id=host:port`` of each member."""
    return ",".join(f"{member.member_id}={member.ingress_endpoint}" for member in members)


def difference(ours: Mapping[int, str], theirs: Mapping[int, str]) -> str:
    """How two lists differ, by members' ids; empty if they are the same."""
    return "; ".join(
        f"member {member_id} is {ours.get(member_id, 'missing')} here, {theirs.get(member_id, 'missing')} there"
        for member_id in sorted({*ours, *theirs})
        if ours.get(member_id) != theirs.get(member_id)
    )


def single_member(members: Iterable[Member], member_id: int) -> Member:
    """The member with an id.

    Raises:
        ConfigError: The members do not name it.
    """
    members = tuple(members)
    for member in members:
        if member.member_id == member_id:
            return member
    raise wrong("member_id", member_id, f"must be an id of members: {_ids(members)}")


def member_here(members: Iterable[Member]) -> Member:
    """The member on this machine: the only one whose host is the name of the machine.

    Raises:
        ConfigError: There is none, or there are several.
    """
    members = tuple(members)
    name = socket.gethostname()
    found = [member for member in members if _is_same_host(member.host, name)]
    if len(found) == 1:
        return found[0]
    which = "several members have" if found else "no member has"
    hosts = ", ".join(dict.fromkeys(member.host for member in members))
    rule = f"is required, as {which} the name of this machine, {name!r}: the hosts are {hosts}, the ids {_ids(members)}"
    raise wrong("member_id", None, rule)


def _is_same_host(host: str, name: str) -> bool:
    """Whether two names are of one machine; one of them may lack the domain."""
    host, name = host.lower(), name.lower()
    return host == name or host == name.partition(".")[0] or host.partition(".")[0] == name


def _ids(members: Iterable[Member]) -> str:
    return ", ".join(str(member.member_id) for member in members)


def check_endpoints(member: Member, endpoints: str) -> None:
    """Check that the endpoints in a setting are those of the member.

    Raises:
        ConfigError: They are not.
    """
    if endpoints and tuple(endpoints.split(",")) != member.endpoints:
        names = ", ".join(_ENDPOINTS)
        raise wrong(
            "member_endpoints",
            endpoints,
            f"must be the {names} endpoints of member {member.member_id} in members: {','.join(member.endpoints)}",
        )
