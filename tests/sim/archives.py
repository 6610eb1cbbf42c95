"""An archive of a simulated world, and what must be true of it: a model that every test here holds it against.

Of each recording the model has the messages that were published, how far the archive has said that it was recorded, and
which changes were asked for without an answer. A crash may have undone or finished these, and nothing else.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import headrace
from headrace import ArchiveTimeoutError
from headrace.archive import Archive, ArchiveError, RecordingDescriptor, SourceLocation
from headrace.archive.client.extension import extension_channel
from headrace.channel import ChannelUri
from headrace.positions import HEADER_LENGTH, segment_position
from headrace.testing import Killed, Node, World, WorldTimeoutError
from headrace.testing.storage import PAGE_LENGTH

KIB = 1024
TERM_LENGTH = 64 * KIB
SEGMENT_LENGTH = 2 * TERM_LENGTH
# What an archive answers with while it is being crashed, and what clients of a crashed node do.
GONE = (headrace.HeadraceError,)
# Longer than sessions and clients of before the crash live on.
RECOVERY_S = 60
SETTINGS = {
    "segment_file_length": SEGMENT_LENGTH,
    "low_storage_space_threshold": 0,
    "file_sync_level": 1,
    "catalog_file_sync_level": 1,
    "catalog_capacity": 4 * KIB,
}


@dataclass(slots=True, eq=False)
class Recorded:
    """A recording: its publisher while it has one, and what is known of it."""

    recording_id: int
    channel: str
    stream_id: int
    location: SourceLocation
    publication: headrace.ExclusivePublication | None
    messages: list[tuple[int, bytes]] = field(default_factory=list, repr=False)
    """Where each ends, and what it says."""
    acknowledged: int = 0
    """How far the archive has said that it was recorded."""
    truncated_to: int | None = None
    """Where a truncation was asked for, until a check has found it undone or finished."""
    is_purged: bool | None = False
    """``None``: asked for, and not answered."""
    start: int = 0
    """Where it begins: where a term does, so that no message reaches over it."""
    asked_start: int | None = None
    """Where it was to begin after a purge of segments, until a check has found that undone or finished."""

    def expected(self, stop: int) -> list[bytes]:
        """The messages that a recording with this end has."""
        return [payload for end, payload in self.messages if self.start < end <= stop]

    def drop_after(self, position: int) -> None:
        """The recording goes on from here."""
        self.messages = [one for one in self.messages if one[0] <= position]
        self.acknowledged = min(self.acknowledged, position)


class Library:
    """A node with an archive, a client of it on the same node or on another one, and what it recorded."""

    def __init__(
        self, world: World, store: Node, desk: Node, chance: random.Random, **settings: object
    ) -> None:
        self.world = world
        self.store = store
        self.desk = desk
        self.chance = chance
        self.settings = SETTINGS | settings
        self.recordings: list[Recorded] = []
        self.server: headrace.ArchiveServer
        self.archive: Archive
        self.spoils_only_the_catalog = False
        """The disk takes all but changes of the catalog: what the archive refuses then has not happened."""
        self._stream_id = 1000
        self._refused_before = 0
        self.open()

    @property
    def is_local(self) -> bool:
        return self.store is self.desk

    @property
    def disk(self) -> headrace.testing.SimulatedStorage:
        return self.store.disk()

    # --- lives -----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Start what is down, and connect."""
        for node in (self.store, self.desk):
            if node.is_paused:
                node.resume()
            if not node.is_up:
                node.start()
        if not hasattr(self, "server") or self.server.is_closed or self.server.failure is not None:
            self.server = self.store.run_archive(**self.settings)  # type: ignore[arg-type]
            self._refused_before = self.disk.refused_count
        self.connect()

    def connect(self) -> None:
        """Begin a new session; the one before, if any, is forgotten."""
        control = "aeron:ipc" if self.is_local else f"aeron:udp?endpoint={self.store.name}:8010"
        answers = "aeron:ipc" if self.is_local else f"aeron:udp?endpoint={self.desk.name}:0"
        self.archive = Archive.connect(
            self.desk.connect(), control_channel=control, response_channel=answers, message_timeout_s=5
        )

    def crash(self, *, keeps_writes: bool = False) -> None:
        """The node of the archive crashes, unless its disk has had it crash."""
        if self.store.is_up:
            self.store.crash(keeps_writes=keeps_writes)

    def recover(self) -> None:
        """Start everything on what a crash left, or a disk that refused; nothing of what was begun is left then."""
        self._start()
        for one in self.recordings:
            self._close(one)
        self.await_stops()
        self.check()
        if self._leftovers():
            # What the disk refused while this archive ran is for the next start.
            self.server.close()
            self._start()
            self.check()

    def _start(self) -> None:
        """The start may be killed as well; what refuses for longer is raised."""
        end_s = self.world.now_s + RECOVERY_S
        while True:
            try:
                self.open()
            except Killed:
                # Whatever was to kill this start kills no other.
                self.disk.mend()
                continue
            except GONE:
                # A session of before, or a driver that has not noticed yet; the archive itself runs.
                if self.world.now_s >= end_s:
                    raise
                self.world.run_for(1)
                continue
            break
        self.disk.mend()
        self.spoils_only_the_catalog = False

    def await_stops(self) -> None:
        """Until nothing is recorded any more."""

        def is_stopped() -> bool:
            return all(one.stop_position >= 0 for one in self.archive.list_recordings())

        self._await(is_stopped, within_s=40, what="the end of all recordings")

    def _await(self, condition: Callable[[], bool], *, within_s: float, what: str) -> None:
        """As `World.run_until`, asking less often: each answer takes many steps."""
        end_s = self.world.now_s + within_s
        while not condition():
            if self.world.now_s > end_s:
                raise WorldTimeoutError(f"{what}: not within {within_s:g} s")
            self.world.run_for(0.01)

    # --- what a client does ----------------------------------------------------------------------------------------

    def record(self) -> Recorded:
        """Begin a recording, of a publisher on the node of the client."""
        self._stream_id += 1
        if self.is_local:
            channel, location = "aeron:ipc?term-length=64k", SourceLocation.LOCAL
        else:
            channel = f"aeron:udp?endpoint={self.store.name}:{40_000 + self._stream_id}|term-length=64k"
            location = SourceLocation.REMOTE
        self.archive.start_recording(channel, self._stream_id, location=location, auto_stop=True)
        publication = self.archive.client.add_exclusive_publication(channel, self._stream_id)
        found = self._await_recording(publication, 0)
        one = Recorded(found.recording_id, channel, self._stream_id, location, publication)
        self.recordings.append(one)
        return one

    def _await_recording(
        self, publication: headrace.ExclusivePublication, min_id: int
    ) -> RecordingDescriptor:
        found: list[RecordingDescriptor] = []

        def has_begun() -> bool:
            listed = self.archive.list_recordings(min_id)
            found[:] = [
                one
                for one in listed
                if one.session_id == publication.session_id
                and one.stream_id == publication.stream_id
                and one.stop_position < 0
            ]
            return bool(found) and publication.is_connected

        self._await(has_begun, within_s=20, what="the beginning of a recording")
        return found[0]

    def publish(self, one: Recorded, count: int) -> None:
        """Publish messages, short ones, long ones and ones of several fragments."""
        for _ in range(count):
            self._offer(one, self.chance.choice((0, 1, 40, 700, 1376, 5000, 8100)))

    def fill(self, one: Recorded) -> None:
        """Publish up to the end of the segment file, or until a frame reaches into its last page, without padding."""
        assert one.publication is not None
        position, longest = self._offer(one, 0), one.publication.max_payload_length
        end = (position // SEGMENT_LENGTH + 1) * SEGMENT_LENGTH
        if self.chance.random() < 0.5:
            end -= PAGE_LENGTH - 32 * self.chance.randint(1, 20)
        while position < end:
            room = min(end - position, TERM_LENGTH - position % TERM_LENGTH)
            position = self._offer(one, 8100 if room > 12 * KIB else min(longest, room - HEADER_LENGTH))

    def _offer(self, one: Recorded, length: int) -> int:
        """Publish a message. A disk may take zeros for what was never written."""
        assert one.publication is not None
        payload = self.chance.choice((self.chance.randbytes, bytes))(length)
        end = one.publication.offer_blocking(payload, timeout_s=10)
        one.messages.append((end, payload))
        return end

    def look(self, one: Recorded) -> None:
        """Ask how far it is recorded."""
        position = self.archive.recording_position(one.recording_id)
        one.acknowledged = max(one.acknowledged, position or 0)

    def await_recorded(self, one: Recorded) -> None:
        """Until all that was published is recorded."""
        end = one.messages[-1][0] if one.messages else 0

        def is_recorded() -> bool:
            self.look(one)
            return one.acknowledged >= end

        self._await(is_recorded, within_s=40, what="the end of the stream in the recording")

    def stop(self, one: Recorded) -> None:
        """Close its publisher, and wait for its end."""
        self._close(one)

        def is_stopped() -> bool:
            found = self.archive.find_recording(one.recording_id)
            return found is not None and found.stop_position >= 0

        self._await(is_stopped, within_s=40, what="the end of a recording")

    def _close(self, one: Recorded) -> None:
        publication, one.publication = one.publication, None
        if publication is not None:
            publication.close()

    def truncate(self, one: Recorded, position: int) -> None:
        """Cut it off; until the answer is there it may have happened or not."""
        one.truncated_to = position
        try:
            self.archive.truncate_recording(one.recording_id, position)
        except ArchiveError as refusal:
            if self._is_undone(refusal):
                one.truncated_to = None
            raise
        one.drop_after(position)
        self.world.run_until(lambda: self._leftovers() == [], within_s=10, what="the end of its note")
        self._check_truncated(one)

    def purge_segments(self, one: Recorded, position: int) -> None:
        """Have it begin in a later segment; until the answer is there it may have happened or not."""
        one.asked_start = position
        try:
            self.archive.purge_segments(one.recording_id, position)
        except ArchiveError as refusal:
            if self._is_undone(refusal):
                one.asked_start = None
            raise
        self._begin_at(one, position)
        self.world.run_until(lambda: self._leftovers() == [], within_s=10, what="the end of its note")
        self._check_purged_segments(one)

    @staticmethod
    def _begin_at(one: Recorded, position: int) -> None:
        one.start, one.asked_start = position, None
        one.messages = [message for message in one.messages if message[0] > position]

    def _check_purged_segments(self, one: Recorded) -> None:
        """No file is left of what was purged."""
        if self._leftovers() or self._is_refused:
            return
        bases = [segment_position(name, one.recording_id) for name in self._files(one)]
        assert all(base is None or base >= one.start for base in bases), f"{one} has {bases}"

    def purge(self, one: Recorded) -> None:
        """Delete it; until the answer is there it may have happened or not."""
        one.is_purged = None
        try:
            self.archive.purge_recording(one.recording_id)
        except ArchiveError as refusal:
            if self._is_undone(refusal):
                one.is_purged = False
            raise
        one.is_purged = True
        self.world.run_until(lambda: self._files(one) == [], within_s=10, what="the end of its files")

    def _is_undone(self, refusal: ArchiveError) -> bool:
        """Whether what was asked for has not happened: the archive said no, and the disk let it undo all."""
        return self.spoils_only_the_catalog and not isinstance(refusal, ArchiveTimeoutError)

    def extend(self, one: Recorded) -> None:
        """Go on where it stopped."""
        found = self.archive.find_recording(one.recording_id)
        assert found is not None
        one.drop_after(found.stop_position)
        one.truncated_to = None
        with contextlib.suppress(ArchiveError):
            # What ended by itself may still wait for other publishers of the stream.
            self.archive.stop_recording(one.channel, one.stream_id)
        publication = self.archive.client.add_exclusive_publication(
            extension_channel(one.channel, found), one.stream_id
        )
        one.publication = publication
        channel = ChannelUri(one.channel).with_parameters(session_id=publication.session_id)
        self.archive.extend_recording(
            one.recording_id, channel, one.stream_id, location=one.location, auto_stop=True
        )
        self._await_recording(publication, one.recording_id)

    # --- what must be ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Recorded means recorded, a replay equals what was published, and what was begun is undone or finished."""
        listed = {one.recording_id: one for one in self.archive.list_recordings()}
        self._check_owners(listed.keys())
        for one in self.recordings:
            self._check(one, listed.pop(one.recording_id, None))
        # An unanswered request to record may have begun one.
        for unknown in listed.values():
            assert unknown.stop_position in (-1, unknown.start_position), unknown
        self.recordings = [one for one in self.recordings if one.is_purged is False or self._files(one)]
        assert self._is_refused or self._leftovers() == []

    @property
    def _is_refused(self) -> bool:
        """Whether the disk has refused something since the archive was started."""
        return self.disk.refused_count > self._refused_before

    def _leftovers(self) -> list[str]:
        """What the next start finishes, or takes away."""
        return [name for name in self.disk.names() if name.endswith((".begun", ".part", ".updated"))]

    def _check(self, one: Recorded, found: RecordingDescriptor | None) -> None:
        if found is None:
            assert one.is_purged is not False, f"{one} is gone"
            one.is_purged = True
            # The note alone makes the next start delete what this one could not.
            is_noted = self._is_refused and f"purge-{one.recording_id}.begun" in self._leftovers()
            assert is_noted or self._files(one) == [], f"{one} was purged"
            return
        assert one.is_purged is not True, f"{one} was purged, and is back"
        one.is_purged = False
        assert found.start_position in (one.start, one.asked_start), f"{one} begins at {found.start_position}"
        self._begin_at(one, found.start_position)
        self._check_purged_segments(one)
        if found.stop_position < 0:
            return
        if found.stop_position == one.truncated_to:
            one.drop_after(found.stop_position)
            self._check_truncated(one)
        one.truncated_to = one.truncated_to if self._leftovers() else None
        assert found.stop_position >= one.acknowledged, f"{one} ends at {found.stop_position}"
        assert self.replayed(one, found) == one.expected(found.stop_position)
        one.acknowledged = found.stop_position
        if not self._leftovers():
            bases = [segment_position(name, one.recording_id) for name in self._files(one)]
            assert all(base is None or base <= found.stop_position for base in bases), f"{found} has {bases}"

    def _check_owners(self, listed_ids: Iterable[int]) -> None:
        """No file is left of a recording that is gone."""
        if self._leftovers() or self._is_refused:
            return
        segments = [name for name in self.disk.names() if name.endswith(".rec")]
        owners = {int(name.partition("-")[0]) for name in segments}
        assert owners.issubset(listed_ids), f"{segments} are left of recordings other than {list(listed_ids)}"

    def _check_truncated(self, one: Recorded) -> None:
        """What was truncated is not on the disk any more, so no later life of the archive can take it for its own."""
        position = one.truncated_to
        assert position is not None
        if self._leftovers() or self._is_refused:
            return
        for name in self._files(one):
            base = segment_position(name, one.recording_id)
            assert base is None or not any(self.disk.files[name][max(0, position - base) :]), (name, one)

    def _files(self, one: Recorded) -> list[str]:
        return [name for name in self.disk.names() if name.startswith(f"{one.recording_id}-")]

    def replayed(self, one: Recorded, found: RecordingDescriptor) -> list[bytes]:
        """What a replay of a stopped recording gives."""
        if found.stop_position == found.start_position:
            return []
        channel = "aeron:ipc" if self.is_local else f"aeron:udp?endpoint={self.desk.name}:0"
        with self.archive.replay(one.recording_id, channel=channel, stream_id=77) as replay:
            return [bytes(message) for message in replay]


def local(world: World, **settings: object) -> Library:
    """An archive whose client is on its node."""
    node = world.add_node("store")
    return Library(world, node, node, random.Random(world.seed), **settings)


def remote(world: World, **settings: object) -> Library:
    """An archive whose client, and its publishers, are on another node."""
    store, desk = world.add_node("store"), world.add_node("desk")
    return Library(world, store, desk, random.Random(world.seed), **settings)


__all__ = ["GONE", "KIB", "SEGMENT_LENGTH", "ArchiveError", "Library", "Recorded", "local", "remote"]
