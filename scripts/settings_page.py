"""Writes `docs/reference/settings.md` from the driver and client themselves: `python scripts/settings_page.py`.

A test compares the page with what this makes, so that the page stays true.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from pathlib import Path

import headrace
from headrace.archive import ArchiveConfig

sys.path.insert(0, str(Path(__file__).resolve().parent))
from setting_meanings import ARCHIVE, CLIENT, DRIVER

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "settings.md"
# What each test driver must be told, and what is therefore not its default.
_TOLD = {"aeron.dir": "/dev/shm/aeron-USER", "aeron.dir.delete.on.shutdown": "false"}
# The one name that is not the property's in capitals.
_ENVIRONMENT = {"aeron.name.resolver.threshold": "AERON_DRIVER_NAME_RESOLVER_THRESHOLD"}
_HEAD = """# Settings

Made by `scripts/settings_page.py`; do not edit.

## Which value wins

One rule for every setting of driver and archive, in Python and on the command line. The last in this list wins:

1. the default;
2. the environment, as in `AERON_DIR=/dev/shm/mine`;
3. the property: `-D aeron.dir=/dev/shm/mine` of `headrace driver`, `headrace archive` and `headraced`, or
   `properties={"aeron.dir": "/dev/shm/mine"}` in Python; of two for one setting the last;
4. an option of the command (`--dir /dev/shm/mine`), or a keyword in Python (`directory="/dev/shm/mine"`).

An option or a keyword that is not given overrides nothing. A configuration object counts as its keywords, and a
keyword given with it overrides it; an `ArchiveConfig` has a value for every setting, so the environment does not count
if one is given. `headraced` has no options: its properties files are read last and override `-D`.

## Driver

Sizes take `k`, `m`, `g`; durations `ns`, `us`, `ms`, `s`; keywords take bytes, and durations in the unit of
their name. A wrong value is refused with an error that names the setting, the value and the rule; an unknown keyword
or property is refused as well. A variable of the environment that is nearly the name of a setting has no effect, and
the error log names it. A time-out of 0 counts as `1us`. The driver also accepts Aeron's
`aeron.sender.io.vector.capacity` and `aeron.network.publication.max.messages.per.send`, which have no effect here, and
refuses by name the settings of features that are not built.

| property | environment | Python keyword | default | meaning |
|---|---|---|---|---|
"""
_CLIENT = """
## Client

Keywords of `headrace.connect` and `headrace.Client.connect`; the fields of `headrace.ClientConfig`.

| keyword | default | meaning |
|---|---|---|
"""


_ARCHIVE = """
## Archive

Keywords are fields of `headrace.archive.ArchiveConfig`. Sizes and durations are written like the driver's. A property
of Aeron's archive that is not in the table is refused by name, with the reason.

| property | environment | Python keyword | default | must be | meaning |
|---|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    driver, client, archive = ("".join(rows()) for rows in (_driver_rows, _client_rows, _archive_rows))
    return _HEAD + driver + _CLIENT + client + _ARCHIVE + archive


def _driver_rows() -> list[str]:
    keywords = {
        field.metadata["property"]: field.name
        for field in dataclasses.fields(headrace.DriverConfig)
        if "property" in field.metadata
    }
    rows = []
    for name, value in sorted((_effective_settings() | _TOLD).items()):
        keyword = f"`{keywords[name]}`" if name in keywords else ""
        environment = _ENVIRONMENT.get(name, name.upper().replace(".", "_"))
        default = f"`{value}`" if value else "unset"
        rows.append(f"| `{name}` | `{environment}` | {keyword} | {default} | {DRIVER[name]} |\n")
    return rows


def _effective_settings() -> dict[str, str]:
    # The environment that this runs in must not become the documented default.
    for name in [name for name in os.environ if name.startswith("AERON_")]:
        del os.environ[name]
    with (
        tempfile.TemporaryDirectory() as parent,
        headrace.MediaDriver(directory=Path(parent) / "driver", dir_delete_on_shutdown=True) as driver,
    ):
        return driver.settings


def _client_rows() -> list[str]:
    rows = []
    for field in dataclasses.fields(headrace.ClientConfig):
        default = "unset" if field.default in (None, "") else f"`{field.default}`"
        rows.append(f"| `{field.name}` | {default} | {CLIENT[field.name]} |\n")
    return rows


def _archive_rows() -> list[str]:
    rows = []
    for field in sorted(
        dataclasses.fields(ArchiveConfig), key=lambda field: field.metadata.get("property", "~")
    ):
        name, default = field.metadata.get("property"), field.default
        if isinstance(default, bool):
            default = str(default).lower()
        names = f"`{name}` | `{name.upper().replace('.', '_')}`" if name else " | "
        shown = "unset" if default is None else f"`{default}`"
        rows.append(
            f"| {names} | `{field.name}` | {shown} | {field.metadata['rule'].text} | {ARCHIVE[field.name]} |\n"
        )
    return rows


if __name__ == "__main__":
    PAGE.write_text(page())
