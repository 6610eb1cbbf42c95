"""Writes what follows from the declarations of the settings: `python scripts/settings.py`; `--check` compares only.

Rust's tables declare the settings of driver and client, `headrace.archive.ArchiveConfig` those of the archive, and the
configs of `headrace.cluster` those of a cluster. From
them come the typed keywords and fields in `python/headrace/_settings.py`, and `docs/reference/settings.md`. After a
change of a table in Rust, build first: `make build`.
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace import _core
from headrace._declared import DeclaredConfig
from headrace.archive import ArchiveConfig
from headrace.cluster import ClusterClientConfig, ConsensusModuleConfig, ContainerConfig

ROOT = Path(__file__).resolve().parent.parent
Declaration = dict[str, Any]

_TYPES = {
    "text": "str",
    "path": "str | os.PathLike[str]",
    "boolean": "bool",
    "number": "int",
    "bytes": "int",
    "nanoseconds": "int",
    "milliseconds": "int",
}
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

# --- Python ----------------------------------------------------------------------------------------------------

_MODULE = '''"""The settings of driver and client, as keywords and as frozen dataclasses.

Made by `scripts/settings.py` from the tables in Rust; do not edit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from headrace._config import ClientValues, DriverValues

__all__ = ["ClientConfig", "ClientSettings", "DriverConfig", "DriverSettings"]


def _setting(default: Any, kind: str, property_name: str | None = None) -> Any:
    return field(default=default, metadata={{"kind": kind, "property": property_name}})


class DriverSettings(TypedDict, total=False):
    """Keyword arguments of :class:`headrace.MediaDriver`; see :class:`headrace.DriverConfig` for what they mean."""

{driver_keywords}

@dataclass(frozen=True, kw_only=True)
class DriverConfig(DriverValues):
    """Settings of a media driver.

    Each field stands for one property. ``None`` leaves the setting to the environment, and failing that to its
    default. Lengths are bytes, durations carry their unit in the name. Values are checked by the driver when it
    starts; a wrong one raises :class:`headrace.ConfigError` naming the setting, the value and the rule.
    """

{driver_fields}
    properties: Mapping[str, str] = field(default_factory=dict)
    """Further settings by the specification's property names, with its value syntax (``"16m"``, ``"5s"``).

    A keyword above wins over the same setting here.
    """


class ClientSettings(TypedDict, total=False):
    """Keyword arguments of :meth:`headrace.Client.connect`; see :class:`headrace.ClientConfig` for what they mean."""

{client_keywords}

@dataclass(frozen=True, kw_only=True)
class ClientConfig(ClientValues):
    """Settings of a client. Durations carry their unit in the name."""

    directory: str | os.PathLike[str] | None = None
    """Directory of the driver; ``None`` for :func:`headrace.default_directory`."""

{client_fields}
'''


_KEYWORDS_MODULE = '''"""The settings of {owner}, as keywords.

Made by `scripts/settings.py` from :class:`{config}`; do not edit.
"""

from __future__ import annotations

import os
{imports}
__all__ = ["{name}"]


class {name}(TypedDict, total=False):
    """Keyword arguments of {owner}; see :class:`{config}` for what they mean.

    ``None`` is as good as not given.
    """

{keywords}'''
_SECURITY_IMPORTS = """from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from headrace.security import Authenticator, AuthorisationService
"""


def archive_module() -> str:
    """The Python module of the archive's keywords."""
    return _keywords_module(ArchiveConfig, "ArchiveSettings", "an archive")


def consensus_module_module() -> str:
    """The Python module of the consensus module's keywords."""
    return _keywords_module(ConsensusModuleConfig, "ConsensusModuleSettings", "a consensus module")


def container_module() -> str:
    """The Python module of a service container's keywords."""
    return _keywords_module(ContainerConfig, "ContainerSettings", "a service's container")


def _keywords_module(config: type[DeclaredConfig], name: str, owner: str) -> str:
    keywords = "".join(f"    {field.name}: {_or_none(field.type)}\n" for field in dataclasses.fields(config))
    text = _KEYWORDS_MODULE.format(
        owner=owner,
        config=config._name,
        name=name,
        keywords=keywords,
        imports=_SECURITY_IMPORTS if "Authenticator" in keywords else "from typing import TypedDict\n",
    )
    return _formatted(text)


def _or_none(annotation: object) -> str:
    return str(annotation) if str(annotation).endswith("| None") else f"{annotation} | None"


def module() -> str:
    """The Python module of driver and client."""
    declared = _core.setting_declarations()
    driver, client = declared["driver"], declared["client"]
    text = _MODULE.format(
        driver_keywords="".join(f"    {d['keyword']}: {_TYPES[d['kind']]} | None\n" for d in driver),
        driver_fields="".join(map(_driver_field, driver)),
        client_keywords="".join(f"    {d['keyword']}: {_TYPES[d['kind']]}\n" for d in client),
        client_fields="".join(map(_client_field, client)),
    )
    return _formatted(text)


def _formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def _driver_field(declared: Declaration) -> str:
    default = f"``{declared['default']}``" if declared["default"] else "none"
    return (
        f"    {declared['keyword']}: {_TYPES[declared['kind']]} | None = "
        f'_setting(None, "{declared["kind"]}", "{declared["property"]}")\n'
        + _docstring(f"{declared['meaning']} Default: {default}.")
    )


def _client_field(declared: Declaration) -> str:
    value = _keyword_value(declared)
    shown = f"{value:_}" if isinstance(value, int) and not isinstance(value, bool) else repr(value)
    return (
        f'    {declared["keyword"]}: {_TYPES[declared["kind"]]} = _setting({shown}, "{declared["kind"]}")\n'
        + _docstring(declared["meaning"])
    )


def _docstring(text: str) -> str:
    marked = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text)
    indent = "    "
    return (
        "\n".join(textwrap.wrap(f'"""{marked}"""', 110, initial_indent=indent, subsequent_indent=indent))
        + "\n\n"
    )


def _keyword_value(declared: Declaration) -> object:
    """The default as the keyword takes it."""
    text, kind = declared["default"], declared["kind"]
    if kind == "boolean":
        return text == "true"
    if kind == "nanoseconds":
        number, unit = re.fullmatch(r"(\d+)([a-z]+)", text).groups()
        return int(number) * _UNITS[unit]
    return text if _TYPES[kind].startswith("str") else int(text)


# --- the reference ---------------------------------------------------------------------------------------------

_PAGE = """# Settings

Made by `scripts/settings.py`; do not edit.

## Which value wins

One rule for every setting of driver and archive, in Python and on the command line. The last in this list wins:

1. the default;
2. the environment, as in `AERON_DIR=/dev/shm/mine`;
3. the property: `-D aeron.dir=/dev/shm/mine` of `headrace driver`, `headrace archive` and `headraced`, or
   `properties={"aeron.dir": "/dev/shm/mine"}` in Python; of two for one setting the last;
4. an option of the command (`--dir /dev/shm/mine`), or a keyword in Python (`directory="/dev/shm/mine"`).

An option or a keyword that is not given overrides nothing. A configuration object counts as its keywords, and a
keyword given with it overrides it; an `ArchiveConfig` has a value for every setting, so the environment does not count
if one is given. `headraced` has no such options: its properties files are read last and override `-D`.

## Driver

Sizes take `k`, `m`, `g`; durations `ns`, `us`, `ms`, `s`; keywords take bytes, and durations in the unit of
their name. A wrong value, or one out of range, is refused with an error that names the setting, the value and the
rule, also in the environment, where Aeron's C driver takes the nearest value that is allowed; an unknown keyword or
property is refused as well. A variable of the environment that is nearly the name of a setting has no effect, and
the error log names it. So it is with a line of a properties file of `headraced`: the error log has it under the name of
its variable.

| property | environment | Python keyword | default | must be | meaning |
|---|---|---|---|---|---|
"""
_INEFFECTIVE = """
### Settings without effect

Aeron's drivers have these settings, and here they can change nothing: each names code of Aeron's drivers or of another
system, Java classes, C libraries, Windows, which this driver does not run, or a switch without a use. The accepted
values ask for what this driver does
anyway. Another value is refused where a stream or the driver would be another than was asked for; elsewhere the error
log names it.

| property | accepted | another value | why, and what to do instead |
|---|---|---|---|
"""
_ALIASES = """
### Older names of settings

Of an older and a newer name, the newer one wins.

| property | sets | must be |
|---|---|---|
"""
_CLIENT = """
## Client

Keywords of `headrace.connect` and `headrace.Client.connect`; the fields of `headrace.ClientConfig`.

| keyword | default | must be | meaning |
|---|---|---|---|
"""
_ARCHIVE = """
## Archive

Keywords are fields of `headrace.archive.ArchiveConfig`. Sizes and durations are written like the driver's. A property
of Aeron's archive that is not in the table is refused by name, with the reason.

| property | environment | Python keyword | default | must be | meaning |
|---|---|---|---|---|---|
"""
_CLUSTER = """
## Cluster

As for the archive: keywords are fields of the class that is named, and properties are written like the driver's.

### Consensus module

Fields of `headrace.cluster.ConsensusModuleConfig`; keywords of `ConsensusModule`, and of `ClusterNode`, which sets
`members`, `ingress_channel` and `log_channel` for a cluster of one, and the directory.
"""
_CONTAINER = """
### Service container

Fields of `headrace.cluster.ContainerConfig`; keywords of `ServiceContainer`.
"""
_CLUSTER_CLIENT = """
### Cluster client

Fields of `headrace.cluster.ClusterClientConfig`; keywords of `ClusterClient.connect`.
"""
_COLUMNS = """
| property | environment | Python keyword | default | must be | meaning |
|---|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    declared = _core.setting_declarations()
    parts = (
        (_PAGE, _driver_rows(declared["driver"])),
        (_ALIASES, _alias_rows(declared["driver_aliases"])),
        (_INEFFECTIVE, _ineffective_rows(declared["driver_ineffective"])),
        (_CLIENT, _client_rows(declared["client"])),
        (_ARCHIVE, _config_rows(ArchiveConfig)),
        (_CLUSTER + _COLUMNS, _config_rows(ConsensusModuleConfig)),
        (_CONTAINER + _COLUMNS, _config_rows(ContainerConfig)),
        (_CLUSTER_CLIENT + _COLUMNS, _config_rows(ClusterClientConfig)),
    )
    return "".join(head + "".join(rows) for head, rows in parts)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _code(text: object) -> str:
    return f"`{text}`" if text not in (None, "", b"") else "unset"


def _driver_rows(declared: list[Declaration]) -> Iterator[str]:
    for setting in sorted(declared, key=lambda setting: setting["property"]):
        yield _row(
            _code(setting["property"]),
            _code(setting["environment"]),
            _code(setting["keyword"]),
            _code(setting["default"]),
            _rule(setting),
            setting["meaning"],
        )


def _rule(setting: Declaration) -> str:
    return setting["rule"].removeprefix("must be ")


def _alias_rows(declared: list[Declaration]) -> Iterator[str]:
    for alias in sorted(declared, key=lambda alias: alias["property"]):
        yield _row(_code(alias["property"]), _code(alias["sets"]), _rule(alias))


def _ineffective_rows(declared: list[Declaration]) -> Iterator[str]:
    for setting in sorted(declared, key=lambda setting: setting["property"]):
        accepted = ", ".join(_code(value) for value in setting["accepted"]) or "none"
        other = "refused" if setting["is_refused"] else "noted"
        yield _row(_code(setting["property"]), accepted, other, setting["reason"])


def _client_rows(declared: list[Declaration]) -> Iterator[str]:
    meaning = "The driver's directory; unset: `AERON_DIR`, else `/dev/shm/aeron-USER`."
    yield _row("`directory`", "unset", "a path", meaning)
    for setting in declared:
        keyword, value = _code(setting["keyword"]), _code(_keyword_value(setting))
        yield _row(keyword, value, _rule(setting), setting["meaning"])


def _config_rows(config: type[Any]) -> Iterator[str]:
    fields = dataclasses.fields(config)
    for field in sorted(fields, key=lambda field: field.metadata.get("property", "~")):
        name, default = field.metadata.get("property"), field.default
        if isinstance(default, bool):
            default = str(default).lower()
        names = (f"`{name}`", f"`{name.upper().replace('.', '_')}`") if name else ("", "")
        yield _row(
            *names,
            _code(field.name),
            _code(default),
            field.metadata["rule"].text,
            # A bar would end the cell.
            field.metadata["meaning"].replace("|", r"\|"),
        )


# --- both ------------------------------------------------------------------------------------------------------

MADE = {
    ROOT / "python" / "headrace" / "_settings.py": module,
    ROOT / "python" / "headrace" / "archive" / "server" / "keywords.py": archive_module,
    ROOT / "python" / "headrace" / "cluster" / "member" / "keywords.py": consensus_module_module,
    ROOT / "python" / "headrace" / "cluster" / "service" / "keywords.py": container_module,
    ROOT / "docs" / "reference" / "settings.md": page,
}


def main(arguments: list[str]) -> int:
    """Write the files, or tell which are not what they should be."""
    texts = {path: make() for path, make in MADE.items()}
    if arguments == ["--check"]:
        stale = [path for path, text in texts.items() if path.read_text(encoding="utf-8") != text]
        for path in stale:
            print(f"{path.relative_to(ROOT)}: is not what the declarations say; run scripts/settings.py")
        return 1 if stale else 0
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
