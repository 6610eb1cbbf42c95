"""The directory of a cluster's member, for programs that look at it while no member runs, or beside one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._agent.storage import DirectoryStorage
from headrace.clock import SYSTEM_CLOCK
from headrace.cluster.errors import ClusterFileError
from headrace.cluster.files.mark_file import (
    MARK_NAME,
    marked_directory,
    no_component_running,
    read_errors,
    read_mark_fields,
    service_mark_name,
)
from headrace.cluster.files.node_state import NODE_STATE_NAME, NodeStateFile
from headrace.cluster.files.recording_log import RECORDING_LOG_NAME, RecordingLog

if TYPE_CHECKING:
    from headrace._agent.storage import Storage
    from headrace.clock import Clock
    from headrace.cluster.files.mark_file import MarkFields
    from headrace.cluster.files.node_state import CandidateTerm

__all__ = ["ClusterDirectory", "NoMarkFileError"]

_SYNC_ALL = 2
_SERVICES_MAX = 10


class NoMarkFileError(ClusterFileError):
    """No member has run on the directory."""


class ClusterDirectory:
    """The files of one member, of Headrace's or of Aeron's.

    Args:
        path: The directory.
        clock: The clock, to judge whether a member is alive.
        create: Make the directory if it does not exist.
    """

    def __init__(self, path: str | Path, *, clock: Clock = SYSTEM_CLOCK, create: bool = False) -> None:
        self._storage = DirectoryStorage(path, create=create)
        self._clock = clock

    def mark(self) -> MarkFields:
        """The fields of the member's mark file.

        Raises:
            NoMarkFileError: There is none.
            ClusterFileError: It is damaged, or of another version.
        """
        mark = read_mark_fields(self._storage)
        if mark is None:
            path = marked_directory(self._storage).describe(MARK_NAME)
            raise NoMarkFileError(f"{path} does not exist: no member has run on the directory")
        return mark

    def service_marks(self) -> dict[int, MarkFields]:
        """The fields of the mark files of the member's services that have run, by service id.

        Raises:
            ClusterFileError: One is damaged, or there is no mark file of the member.
        """
        marks = {}
        for service_id, (storage, name) in self._service_files().items():
            mark = read_mark_fields(storage, name)
            if mark is not None:
                marks[service_id] = mark
        return marks

    def _service_files(self) -> dict[int, tuple[Storage, str]]:
        other = self.mark().services_cluster_directory
        storage = self._storage
        if other and Path(other).is_dir():
            storage = DirectoryStorage(other, create=False)
        return {service_id: (storage, service_mark_name(service_id)) for service_id in range(_SERVICES_MAX)}

    def errors(self) -> dict[str, bytes]:
        """The error logs of the member and of its services, by the names of their files.

        Raises:
            ClusterFileError: There is no mark file, or it is damaged.
        """
        files = [(self._storage, MARK_NAME), *self._service_files().values()]
        logs = {}
        for storage, name in files:
            entries = read_errors(storage, name)
            if entries is not None:
                logs[marked_directory(storage, name).describe(name)] = entries
        return logs

    def candidate_term(self) -> CandidateTerm | None:
        """The last term in which the member voted or stood; ``None`` without a node-state file.

        Raises:
            ClusterFileError: The file is damaged.
        """
        if self._storage.length(NODE_STATE_NAME) is None:
            return None
        with NodeStateFile(self._storage, read_only=True) as state:
            return state.candidate_term

    def recording_log(self) -> RecordingLog:
        """The member's recording log, to be read.

        Raises:
            ClusterFileError: There is none, or it is damaged.
        """
        self._check_log()
        return RecordingLog(self._storage, read_only=True)

    def check_no_member_runs(self) -> None:
        """Check that the directory may be changed.

        Raises:
            ClusterFileError: A member runs on it, or did less than ten seconds ago.
        """
        with self._no_member_running():
            pass

    def _no_member_running(self) -> AbstractContextManager[None]:
        return no_component_running(self._storage, MARK_NAME, self._clock.epoch_ms())

    @contextmanager
    def changed_recording_log(self) -> Iterator[RecordingLog]:
        """The member's recording log, to be changed; forces all changes to the medium at the end.

        Raises:
            ClusterFileError: A member runs, there is no recording log, or it is damaged.
        """
        with self._no_member_running():
            self._check_log()
            with RecordingLog(self._storage, sync_level=_SYNC_ALL) as log:
                yield log
                log.force()

    def _check_log(self) -> None:
        if self._storage.length(RECORDING_LOG_NAME) is None:
            path = self._storage.describe(RECORDING_LOG_NAME)
            raise ClusterFileError(f"{path} does not exist: is this the directory of a cluster's member?")
