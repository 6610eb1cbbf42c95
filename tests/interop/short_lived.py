"""Java programs that live for seconds."""

from __future__ import annotations

from benches.processes import JavaPeer


class ShortLivedJava(JavaPeer):
    """The reference's artifacts, with what lets a program start soon.

    The second compiler pays for what runs long, and takes the processor from the tests beside.
    """

    OPTIONS = (*JavaPeer.OPTIONS, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
