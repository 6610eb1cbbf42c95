"""Puts a compiled program into a wheel, from which pip installs it as a command: `add_command.py WHEEL PROGRAM`.

maturin builds wheels of an extension or of programs, not of both.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

# Of a regular file that all may read and run, in the upper half as Unix's mode.
_EXECUTABLE = 0o100755 << 16


def add_command(wheel: Path, program: Path) -> None:
    """Rewrites the wheel with the program and its line in the wheel's record."""
    name, version = wheel.name.split("-")[:2]
    member = zipfile.ZipInfo(f"{name}-{version}.data/scripts/{program.name}")
    member.external_attr = _EXECUTABLE
    member.compress_type = zipfile.ZIP_DEFLATED
    contents = program.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
    line = f"{member.filename},sha256={digest},{len(contents)}\n"
    whole = wheel.with_suffix(".whole")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename.endswith(".dist-info/RECORD"):
                new.writestr(member, contents)
                data = line.encode() + data
            new.writestr(entry, data, zipfile.ZIP_DEFLATED)
    whole.replace(wheel)


if __name__ == "__main__":
    add_command(Path(sys.argv[1]), Path(sys.argv[2]))
