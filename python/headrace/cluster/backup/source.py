"""The member that a backup copies from, and its archive. Cluster specification 8.6."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cluster.common.asked_archive import AskedArchive
from headrace.cluster.common.members import single_member, wire_members
from headrace.cluster.common.recording_copies import OtherArchive
from headrace.cluster.errors import ClusterError
from headrace.security.credentials import supplier_of

if TYPE_CHECKING:
    from headrace.client import Client
    from headrace.cluster.backup.config import ClusterBackupConfig
    from headrace.cluster.protocol.consensus import BackupResponse

__all__ = ["Source"]


class Source:
    """A member that has answered. Stepped by its owner, who closes it.

    Raises:
        ConfigError: The member does not say where its archive is.
    """

    def __init__(self, client: Client, config: ClusterBackupConfig, answer: BackupResponse) -> None:
        member = single_member(wire_members(answer.cluster_members), answer.member_id)
        self.member_id = answer.member_id
        found = config.source_archive(member.archive_endpoint, member.archive_response_endpoint)
        self.archive = AskedArchive(client, found, f"the archive of member {self.member_id}")
        self.address = OtherArchive(
            found.control_channel,
            found.control_stream_id,
            supplier_of(found.credentials).encoded_credentials(),
        )
        self._was_ready = False

    def step(self) -> None:
        """Go on with what can go on now.

        Raises:
            ClusterError: Its archive was there, and is not any more.
        """
        self.archive.step()
        if self._was_ready and not self.archive.is_ready:
            raise ClusterError(f"the archive of member {self.member_id} is gone: {self.archive.failure}")
        self._was_ready = self.archive.is_ready

    def close(self) -> None:
        """End the session with its archive."""
        self.archive.close()
