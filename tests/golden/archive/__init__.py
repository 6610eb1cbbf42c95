"""Directories of archives before version 3 of the format, as Aeron's archives of that time wrote them.

Each is what `OldArchive.java` left with `io.aeron:aeron-archive` 1.15.0 (0.0.1), and `io.aeron:aeron-all` 1.22.1
(1.0.0) and 1.28.2 (2.1.0). Recordings, with segment files of 128 KiB, all but the last one stopped:

    0  60 messages from position 0           3  4 messages, in terms of 1 MiB, longer than the setting for segments
    1  100 messages from position 327776     4  as 1; in version 2.1.0 its first segment file is purged
    2  no message, from position 327776      5  60 messages from position 327776; the archive died while it recorded
"""

import tarfile
from pathlib import Path

HERE = Path(__file__).parent
VERSIONS = ("0.0.1", "1.0.0", "2.1.0")
MESSAGE_LENGTH = 3000
MESSAGE_COUNTS = {0: 60, 1: 100, 2: 0, 3: 4, 4: 100, 5: 60}


def unpack(version: str, directory: Path) -> Path:
    """A directory of one version; gives the directory."""
    with tarfile.open(HERE / f"version-{version}.tar.xz") as archive:
        archive.extractall(directory, filter="data")
    return directory
