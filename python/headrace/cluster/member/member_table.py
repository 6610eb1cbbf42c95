"""The members as this one knows them: as listed, and as changed by the log; and what a replacement has to remember.

Kept in a file beside the recording log. It is on the disk before it counts. Design note 56.

    {"lists": ["0,host:port,...|1,...", ...],   the list of the settings, and each one after it; the last counts
     "position": 4711,                          of the entry of the log that has changed the list last; -1 if none has
     "admitted": true,                          whether the member that was changed last may be spoken to
     "replacement": false}                      whether this member abstains until it has followed a leader
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from headrace._base.exceptions import ConfigError
from headrace.cluster.common.members import Member, difference, members_text, single_member, wire_members
from headrace.cluster.errors import ClusterFileError, ClusterTerminalError
from headrace.positions import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace._agent.storage import Storage
    from headrace.cluster.member.config import ConsensusModuleConfig

__all__ = ["MEMBERS_NAME", "MemberTable"]

MEMBERS_NAME = "cluster-members.json"
_SYNC_ALL = 2
# A replacement is rare; settings from before so many of them are an error.
_LISTS_MAX = 64


class MemberTable:
    """Which members there are.

    Args:
        storage: The directory of the cluster's files.
        config: Which members the settings list, and which one this is.

    Raises:
        ClusterFileError: The file is damaged.
        ConfigError: The settings list other members than the file, or this member has been replaced.
    """

    def __init__(self, storage: Storage, config: ConsensusModuleConfig) -> None:
        self._storage = storage
        self._own_id = config.member_id
        self._own = config.member
        self._lists: list[tuple[Member, ...]] = [config.all_members]
        self.position = NULL_VALUE
        """Of the entry of the log that has changed the list last; -1 if none has. The higher list is the later."""
        self._is_admitted = True
        self._is_replacement = False
        self.version = 0
        """Changes with the list, and with whom to speak to."""
        if storage.length(MEMBERS_NAME) is not None:
            self._load(config)
        if config.is_replacement:
            self.remember_replacement()

    def _load(self, config: ConsensusModuleConfig) -> None:
        path = self._storage.describe(MEMBERS_NAME)
        try:
            file = self._storage.open(MEMBERS_NAME, read_only=True)
            try:
                values = json.loads(file.read(0, file.length()))
            finally:
                file.close()
            self._lists = [wire_members(one) for one in values["lists"]]
            self.position = int(values["position"])
            self._is_admitted = bool(values["admitted"])
            self._is_replacement = bool(values["replacement"])
            if not self._lists:
                raise ValueError("it has no list")
        except (ValueError, KeyError, TypeError) as wrong:
            raise ClusterFileError(f"{path}: is damaged: {wrong}; restore it from a copy") from wrong
        if self.position == NULL_VALUE:
            # Nothing but the settings has listed members.
            self._lists = [config.all_members]
        elif config.all_members not in self._lists:
            other = difference(_shown(config.all_members), _shown(self.current))
            raise ConfigError(
                f"members is another list than that of the cluster, in {path}: {other} (here: members; there: the "
                "cluster). Set members to the cluster's list. If all members were stopped to change it, delete the "
                "file on all of them, after a snapshot"
            )
        self._check_own(self.current)

    def _check_own(self, members: Iterable[Member]) -> None:
        """End where another machine is this member.

        Raises:
            ClusterTerminalError: It is.
        """
        there = single_member(members, self._own_id)
        if there.endpoints != self._own.endpoints:
            raise ClusterTerminalError(
                f"member {self._own_id} has been replaced: it is at {there.consensus_endpoint} now, and no longer at "
                f"{self._own.consensus_endpoint}. This machine must not run it"
            )

    @property
    def current(self) -> tuple[Member, ...]:
        """The members."""
        return self._lists[-1]

    @property
    def is_admitted(self) -> bool:
        """Whether the member that was changed last may be spoken to: a quorum of the others has the list."""
        return self._is_admitted

    @property
    def changed_ids(self) -> frozenset[int]:
        """The members that the last change has moved, as far as this one knows the list before it."""
        if self.position == NULL_VALUE or len(self._lists) < 2:
            return frozenset()
        before = {one.member_id: one for one in self._lists[-2]}
        return frozenset(one.member_id for one in self.current if before.get(one.member_id) != one)

    @property
    def spoken_to(self) -> dict[int, Member]:
        """The other members that this one sends to."""
        hidden = frozenset() if self._is_admitted else self.changed_ids
        return {
            one.member_id: one
            for one in self.current
            if one.member_id != self._own_id and one.member_id not in hidden
        }

    def adopt(self, position: int, members: tuple[Member, ...], *, is_admitted: bool = False) -> bool:
        """Take a later list, which is committed; returns whether it is one.

        Raises:
            ClusterTerminalError: This member is not in it any more, at its address.
            OSError: It cannot be stored.
        """
        if position <= self.position:
            if position == self.position and is_admitted:
                self.admit()
            return False
        self._check_own(members)
        lists = self._lists if members in self._lists[-1:] else [*self._lists, members][-_LISTS_MAX:]
        # It is spoken to already if the settings have listed it.
        is_admitted = is_admitted or lists is self._lists
        self._store(lists, position, is_admitted=is_admitted, is_replacement=self._is_replacement)
        return True

    def admit(self) -> None:
        """A quorum of the others has the list."""
        if not self._is_admitted:
            self._store(self._lists, self.position, is_admitted=True, is_replacement=self._is_replacement)

    @property
    def is_replacement(self) -> bool:
        """Whether this member abstains until it has followed a leader."""
        return self._is_replacement

    def remember_replacement(self) -> None:
        """What was on the disk of this member, and may have made a majority, is not there."""
        if not self._is_replacement:
            self._store(self._lists, self.position, is_admitted=self._is_admitted, is_replacement=True)

    def note_followed(self) -> None:
        """Note that this member has the whole log again."""
        if self._is_replacement:
            self._store(self._lists, self.position, is_admitted=self._is_admitted, is_replacement=False)

    def _store(
        self, lists: list[tuple[Member, ...]], position: int, *, is_admitted: bool, is_replacement: bool
    ) -> None:
        data = json.dumps(
            {
                "lists": [members_text(one) for one in lists],
                "position": position,
                "admitted": is_admitted,
                "replacement": is_replacement,
            }
        ).encode()
        new_name = f"{MEMBERS_NAME}.tmp"
        file = self._storage.create(new_name, len(data), may_exist=True)
        try:
            file.set_length(len(data))
            file.write(0, data)
            file.sync(_SYNC_ALL)
        finally:
            file.close()
        self._storage.rename(new_name, MEMBERS_NAME)
        self._storage.sync()
        self._lists, self.position = list(lists), position
        self._is_admitted, self._is_replacement = is_admitted, is_replacement
        self.version += 1


def _shown(members: Iterable[Member]) -> dict[int, str]:
    return {one.member_id: ",".join(one.endpoints) for one in members}
