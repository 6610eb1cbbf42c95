"""Which archive a source reads, and how: its files, or its control channel and replays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from headrace._base.exceptions import ConfigError
from headrace.archive.files import checksum_named
from headrace.channel import ChannelUri
from headrace.spark._option_values import INT32, MILLISECONDS, Options, refuse

__all__ = ["ARCHIVE_OPTIONS", "ArchiveFiles", "ArchiveService", "archive_of", "names_archive"]

# How Spark writes a table's location, and a user may write any path.
_FILE_URI = re.compile(r"file:(?://)?(?=/)")
_FILES = ("path", "archiveDirectory")
_SERVICE = (
    "controlChannel",
    "controlStreamId",
    "controlResponseChannel",
    "controlResponseStreamId",
    "replayChannel",
    "replayStreamId",
    "timeoutMs",
    "credentialsFile",
)
ARCHIVE_OPTIONS = (*_FILES, *_SERVICE, "aeronDirectory", "recordChecksum")
"""Names of the options that are read here."""


@dataclass(frozen=True, kw_only=True)
class ArchiveFiles:
    """An archive's directory, which all processes of Spark see.

    ``aeron_directory`` is that of its driver, ``record_checksum`` what it puts into frames.
    """

    directory: str
    aeron_directory: str | None
    record_checksum: str | None

    def __str__(self) -> str:
        return self.directory


@dataclass(frozen=True, kw_only=True)
class ArchiveService:
    """An archive that answers requests.

    Without ``aeron_directory`` every process starts a driver of its own; without a channel for answers or replays it
    uses its own address. ``credentials_file`` is on every host: what is in it never goes through Spark.
    """

    control_channel: str
    control_stream_id: int
    response_channel: str | None
    response_stream_id: int
    replay_channel: str | None
    replay_stream_id: int
    aeron_directory: str | None
    timeout_s: float
    credentials_file: str | None

    def __str__(self) -> str:
        return f"the archive at {self.control_channel} controlStreamId={self.control_stream_id}"


def names_archive(given: Mapping[str, str]) -> bool:
    """Whether options say which archive is to be read."""
    names = {name.lower() for name in given}
    return any(name.lower() in names for name in (*_FILES, "controlChannel"))


def archive_of(options: Options) -> ArchiveFiles | ArchiveService:
    """What the options name.

    Raises:
        ConfigError: They name no archive, or several, or a channel that cannot be.
    """
    path, directory = (_FILE_URI.sub("", options.text(name) or "", count=1) for name in _FILES)
    control = options.text("controlChannel")
    if control is not None:
        if path or directory:
            rule = (
                f"recordings are read from the archive or from its files: leave this out, or the directory "
                f"{directory or path} (archiveDirectory, or what load() was given)"
            )
            refuse("controlChannel", control, rule)
        return _service(options, control)
    for name in _SERVICE:
        if (value := options.text(name)) is not None:
            refuse(name, value, "has no meaning without controlChannel")
    if path and directory and path != directory:
        refuse("archiveDirectory", directory, f"load() was given another directory, {path}")
    why = (
        "which archive holds the recordings? Give its directory, here or to load(), or its controlChannel, such as "
        "aeron:udp?endpoint=host:8010"
    )
    return ArchiveFiles(
        directory=directory or path or options.required("archiveDirectory", why),
        aeron_directory=options.text("aeronDirectory"),
        record_checksum=_checksum(options),
    )


def _checksum(options: Options) -> str | None:
    name = options.text("recordChecksum")
    checksum_named(name, "recordChecksum")
    return name


def _service(options: Options, control: str) -> ArchiveService:
    if (checksum := options.text("recordChecksum")) is not None:
        rule = "has no meaning with controlChannel: the archive checks what it replays (aeron.archive.replay.checksum)"
        refuse("recordChecksum", checksum, rule)
    uri = _channel("controlChannel", control)
    aeron_directory = options.text("aeronDirectory")
    if uri.media == "ipc" and not aeron_directory:
        rule = "reaches an archive on the same driver only: give that driver's directory as aeronDirectory"
        refuse("controlChannel", control, rule)
    if uri.media == "udp" and not uri.get("endpoint"):
        refuse("controlChannel", control, "must name the archive's address: aeron:udp?endpoint=host:8010")
    channels = {}
    for name in ("controlResponseChannel", "replayChannel"):
        channels[name] = options.text(name)
        if (given := channels[name]) is not None and _channel(name, given).get("reliable") == "false":
            refuse(name, given, "reliable=false would leave out what the network loses")
    return ArchiveService(
        control_channel=control,
        control_stream_id=options.whole("controlStreamId", INT32, 10) or 0,
        response_channel=channels["controlResponseChannel"],
        response_stream_id=options.whole("controlResponseStreamId", INT32, 20) or 0,
        replay_channel=channels["replayChannel"],
        replay_stream_id=options.whole("replayStreamId", INT32, 1020) or 0,
        aeron_directory=aeron_directory,
        timeout_s=(options.whole("timeoutMs", MILLISECONDS, 30_000) or 0) / 1000,
        credentials_file=options.text("credentialsFile"),
    )


def _channel(name: str, text: str) -> ChannelUri:
    try:
        uri = ChannelUri(text)
    except ConfigError as refusal:
        refuse(name, text, refusal.rule)
    if uri.is_spy or uri.is_response:
        refuse(name, text, "must be a plain aeron:udp or aeron:ipc channel")
    return uri
