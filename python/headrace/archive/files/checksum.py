"""The checksums that frames and catalog entries may carry."""

from __future__ import annotations

from headrace._base.exceptions import ConfigError
from headrace.client import Checksum

__all__ = ["CHECKSUMS", "Checksum", "checksum_named"]

_CLASSES = {"CRC-32": "Crc32", "CRC-32C": "Crc32c"}
CHECKSUMS = tuple(Checksum(name) for name in _CLASSES)
"""All that the specification has."""
_PACKAGES = ("io.aeron.archive.checksum", "org.agrona.checksum")
# Each by its own name and by those of the reference's classes, which its settings and tools use.
_NAMES = {name: name for name in _CLASSES} | {
    f"{package}.{class_name}": name for name, class_name in _CLASSES.items() for package in _PACKAGES
}


def checksum_named(name: str | None, setting: str = "checksum") -> Checksum | None:
    """The checksum of a name in the specification; ``None`` for none.

    Raises:
        ConfigError: The specification has no checksum of that name.
    """
    if not name:
        return None
    if name not in _NAMES:
        rule = "must be one of " + ", ".join(sorted(_NAMES))
        raise ConfigError(f"{setting}={name}: {rule}", setting, name, rule)
    return Checksum(_NAMES[name])
