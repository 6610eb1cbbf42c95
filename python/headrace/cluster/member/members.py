"""The members of a cluster, as their setting and the wire write them. Cluster specification 1.3."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace._checks import excerpt, wrong

__all__ = ["Member", "ingress_endpoints", "members_text", "parse_members", "quorum_of", "single_member"]

_FIELDS_MIN, _FIELDS_MAX = 6, 8
_ENDPOINTS = ("ingress", "consensus", "log", "catchup", "archive")


@dataclass(frozen=True, slots=True)
class Member:
    """One member, and where it is reached: ``host:port`` each."""

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
        """The five that every member has."""
        return (
            self.ingress_endpoint,
            self.consensus_endpoint,
            self.log_endpoint,
            self.catchup_endpoint,
            self.archive_endpoint,
        )


def parse_members(text: str) -> tuple[Member, ...]:
    """The members that a text names: ``id,ingress,consensus,log,catchup,archive[,...]``, separated by ``|``.

    Raises:
        ConfigError: It is no such text, or names a member twice.
    """
    members = []
    for part in text.rstrip("|").split("|"):
        fields = part.split(",")
        while len(fields) > _FIELDS_MIN and not fields[-1]:
            fields.pop()
        is_member = _FIELDS_MIN <= len(fields) <= _FIELDS_MAX and fields[0].strip().isdigit()
        if not is_member or any(":" not in endpoint for endpoint in fields[1:_FIELDS_MIN]):
            raise wrong(
                "members",
                excerpt(text),
                "must be id,ingress,consensus,log,catchup,archive for each member, as host:port, separated by |",
            )
        members.append(Member(int(fields[0]), *fields[1:]))
    if len({member.member_id for member in members}) < len(members):
        raise wrong("members", excerpt(text), "must name each member once")
    return tuple(members)


def members_text(members: Iterable[Member]) -> str:
    """The text again."""
    texts = []
    for one in members:
        further = [text for text in (one.archive_response_endpoint, one.egress_response_endpoint) if text]
        texts.append(",".join([str(one.member_id), *one.endpoints, *further]))
    return "|".join(texts)


def ingress_endpoints(members: Iterable[Member]) -> str:
    """What clients are told: ``id=host:port`` of each member."""
    return ",".join(f"{member.member_id}={member.ingress_endpoint}" for member in members)


def quorum_of(member_count: int) -> int:
    """How many members must agree."""
    return member_count // 2 + 1


def single_member(members: Iterable[Member], member_id: int) -> Member:
    """The member with an id.

    Raises:
        ConfigError: The members do not name it.
    """
    for member in members:
        if member.member_id == member_id:
            return member
    raise wrong("member_id", member_id, f"must be one of members={members_text(members)}")


def check_endpoints(member: Member, endpoints: str) -> None:
    """Look whether the endpoints that a setting repeats are those of the member.

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
