"""The states of a backup, as data. Cluster specification 8.6."""

from __future__ import annotations

from headrace._base.named_number import NamedNumber
from headrace._base.states import StateTable

__all__ = ["BACKUP", "TABLES", "BackupState"]


class BackupState(NamedNumber):
    """See :data:`BACKUP`."""

    BACKUP_QUERY = 0
    SNAPSHOT_RETRIEVE = 1
    LIVE_LOG_RECORD = 2
    LIVE_LOG_REPLAY = 3
    UPDATE_RECORDING_LOG = 4
    BACKING_UP = 5
    RESET_BACKUP = 6
    CLOSED = 7


_B = BackupState
BACKUP: StateTable[BackupState] = StateTable(
    "cluster-backup",
    "Keeps a copy of a cluster's log and snapshots.",
    {
        _B.BACKUP_QUERY: "It asks members, one after the other, what there is to copy.",
        _B.SNAPSHOT_RETRIEVE: "It copies the latest snapshot.",
        _B.LIVE_LOG_RECORD: "Its archive begins to record the log.",
        _B.LIVE_LOG_REPLAY: "The member's archive begins to send the log.",
        _B.UPDATE_RECORDING_LOG: "It notes the term and, once the log has come so far, the snapshot.",
        _B.BACKING_UP: "It copies the log as the cluster commits it, until the next query is due.",
        _B.RESET_BACKUP: "An attempt has failed; the next one begins after a pause.",
        _B.CLOSED: "It has ended.",
    },
    {
        _B.BACKUP_QUERY: (
            _B.SNAPSHOT_RETRIEVE,
            _B.LIVE_LOG_RECORD,
            _B.UPDATE_RECORDING_LOG,
            _B.BACKING_UP,
            _B.RESET_BACKUP,
            _B.CLOSED,
        ),
        _B.SNAPSHOT_RETRIEVE: (_B.LIVE_LOG_RECORD, _B.UPDATE_RECORDING_LOG, _B.RESET_BACKUP, _B.CLOSED),
        _B.LIVE_LOG_RECORD: (_B.LIVE_LOG_REPLAY, _B.RESET_BACKUP, _B.CLOSED),
        _B.LIVE_LOG_REPLAY: (_B.UPDATE_RECORDING_LOG, _B.RESET_BACKUP, _B.CLOSED),
        _B.UPDATE_RECORDING_LOG: (_B.BACKING_UP, _B.RESET_BACKUP, _B.CLOSED),
        _B.BACKING_UP: (_B.BACKUP_QUERY, _B.RESET_BACKUP, _B.CLOSED),
        _B.RESET_BACKUP: (_B.BACKUP_QUERY, _B.CLOSED),
        _B.CLOSED: (),
    },
)

TABLES = (BACKUP,)
"""All of them."""
