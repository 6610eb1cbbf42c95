"""Writes what follows from the declarations of the settings: `python scripts/settings.py`; `--check` compares only.

Rust's tables declare the settings of driver and client, `headrace.archive.ArchiveConfig` those of the archive, and the
configs of `headrace.cluster` those of a cluster. From them come the typed keywords and fields in
`python/headrace/_settings/keywords.py`, and `docs/reference/settings.md`. After a change of a table in Rust, build
first: `make build`.
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
from headrace._agent.rules import AUTHENTICATOR, AUTHORISATION
from headrace._settings.declared import DeclaredConfig
from headrace.archive import ArchiveConfig
from headrace.cluster import (
    ClusterBackupConfig,
    ClusterClientConfig,
    ConsensusModuleConfig,
    ContainerConfig,
)

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

_MODULE = '''"""Settings as keywords; those of driver and client as frozen dataclasses, too.

Made by `scripts/settings.py` from the tables in Rust and the configs of archive and cluster; do not edit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from headrace._settings.config import ClientValues, DriverValues

if TYPE_CHECKING:
    from headrace.security import Authenticator, AuthorisationService
    from headrace.security.credentials import CredentialsSupplier

__all__ = [
    "ArchiveSettings",
    "ClientConfig",
    "ClientSettings",
    "ClusterBackupSettings",
    "ConsensusModuleSettings",
    "ContainerSettings",
    "DriverConfig",
    "DriverSettings",
]


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


_KEYWORDS_CLASS = '''

class {name}(TypedDict, total=False):
    """Keyword arguments of {owner}; see :class:`{config}` for what they mean.

    ``None`` is as good as not given.
    """

{keywords}'''


def _keywords_class(config: type[DeclaredConfig], name: str, owner: str) -> str:
    keywords = "".join(f"    {field.name}: {_or_none(field.type)}\n" for field in dataclasses.fields(config))
    return _KEYWORDS_CLASS.format(owner=owner, config=config._name, name=name, keywords=keywords)


def _or_none(annotation: object) -> str:
    return str(annotation) if str(annotation).endswith("| None") else f"{annotation} | None"


def module() -> str:
    """The Python module."""
    declared = _core.setting_declarations()
    driver, client = declared["driver"], declared["client"]
    text = _MODULE.format(
        driver_keywords="".join(f"    {d['keyword']}: {_TYPES[d['kind']]} | None\n" for d in driver),
        driver_fields="".join(map(_driver_field, driver)),
        client_keywords="".join(f"    {d['keyword']}: {_TYPES[d['kind']]}\n" for d in client),
        client_fields="".join(map(_client_field, client)),
    )
    text += _keywords_class(ArchiveConfig, "ArchiveSettings", "an archive")
    text += _keywords_class(ConsensusModuleConfig, "ConsensusModuleSettings", "a consensus module")
    text += _keywords_class(ContainerConfig, "ContainerSettings", "a service's container")
    text += _keywords_class(ClusterBackupConfig, "ClusterBackupSettings", "a cluster's backup")
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

For every setting of driver, archive and cluster, in Python and on the command line, the last in this list wins:

1. the default;
2. the environment: `AERON_DIR=/dev/shm/mine`;
3. the property: `-D aeron.dir=/dev/shm/mine` on the command line, or
   `properties={"aeron.dir": "/dev/shm/mine"}` in Python; the last of two for one setting;
4. an option of the command (`--dir /dev/shm/mine`), or a keyword in Python (`directory="/dev/shm/mine"`).

A keyword overrides the same setting of a configuration object given with it. Those of archive and cluster
have a value for every setting, so with one the environment does not count. `headraced` reads its properties
files last: they override `-D`.

The variable of the environment is the property in capitals with `_` for each dot, as `AERON_DIR` for
`aeron.dir`EXCEPTIONS.

## How to read the tables

- *boolean*: `true` or `false`. *size*: bytes, also with `k`, `m` or `g`. *duration*: a number with `ns`, `us`, `ms` or
  `s`. Keywords take bytes, and the unit in their name.
- *idle strategy*: IDLE, or Aeron's name for one of them.
- *authenticator*: AUTHENTICATOR.
- *authorisation service*: AUTHORISATION.
- A wrong value, or an unknown keyword or property, ends the start with an error that names the setting, the value and
  the rule. So does a wrong value in the environment, where Aeron's C driver takes the nearest one that is allowed.
- A variable of the environment whose name is nearly that of a setting has no effect, and neither has such a line of
  a properties file of `headraced`. The error log names the variable.

## Driver

A shorter duration than the least counts as the least.
"""
_INEFFECTIVE = """
### Settings without effect

These settings of Aeron's drivers name Java classes, C libraries, Windows, or a switch without a use. The accepted
values ask for what this driver does anyway. It refuses another value, or names it in the error log (noted).

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

Keywords of `headrace.connect` and `headrace.Client.connect`; fields of `headrace.ClientConfig`.

| keyword | default and values | meaning |
|---|---|---|
"""
_ARCHIVE = """
## Archive

Keywords are fields of `headrace.archive.ArchiveConfig`. The archive refuses a property of Aeron's archive that is not
in the table, with the reason.
"""
_CLUSTER = """
## Cluster

### Consensus module and service container

Fields of `ConsensusModuleConfig` and of `ContainerConfig`, both in `headrace.cluster`. A node's module and services
must agree in most of them.
"""
_MODULE_ALONE = """
### Consensus module

Further fields of `ConsensusModuleConfig`; keywords of `ConsensusModule` and of `ClusterNode`, which sets
`members`, `ingress_channel` and `log_channel` for a cluster of one, and the directory.
"""
_CONTAINER = """
### Service container

Further fields of `ContainerConfig`; keywords of `ServiceContainer`.
"""
_BACKUP = """
### Backup

Fields of `headrace.cluster.ClusterBackupConfig`; keywords of `ClusterBackup`. Further ones are the same as in the first
table of the cluster: `cluster_id`, the directories, `idle_strategy`, and how it reaches its own archive.
"""
_CLUSTER_CLIENT = """
### Cluster client

Fields of `headrace.cluster.ClusterClientConfig`; keywords of `ClusterClient.connect`.
"""
_COLUMNS = """
| property and Python keyword | default and values | meaning |
|---|---|---|
"""
# The page says once how sizes and durations are written, and what an idle strategy is. The default beside a range shows
# what it is of; a setting that is unset by default may be.
_SHORTER = (
    (", or unset$", ""),
    ("^an? ", ""),
    (r" \(suffixes [^)]*\)", ""),
    (r"duration; less than (\w+) counts as \1", r"duration from \1"),
    ("duration of at least 0ns", "duration"),
    ("duration of at least", "duration from"),
    ("(whole number|integer|number) of nanoseconds from", "duration from"),
    ("(whole number|integer|number) of milliseconds from", "milliseconds from"),
    ("(whole number|integer) of bytes", "size"),
    ("whole number", "integer"),
    ("integer from -9223372036854775808 to 9223372036854775807", "64-bit integer"),
    ("integer from -2147483648 to 2147483647", "32-bit integer"),
    ("(from [-0-9]+[km]?) to (2147483647|2147475455|9223372036854(775807)?)", r"\1"),
    ("duration from -1$", "duration, or -1"),
    ("(duration|size) from 0$", r"\1"),
    ("duration from 1$", "duration from 1ns"),
    ("power of two from 65536 to 1073741824 bytes", "from 64k to 1g, a power of two"),
    ("from 1048576", "from 1m"),
    ("^multiple of 32.*", "from 64 to 65504, a multiple of 32"),
    ("^(integer|size) from", "from"),
    ("^integer up to .*; less than 0 counts as 0", "from 0"),
    (", separated by a space, .*", ""),
    (
        "(?:one of )?(.*), or (?:a name that Aeron has for it|a class of Aeron(?: with one of them)?)",
        r"\1, or Aeron's name",
    ),
    ("one of ", ""),
    ("true or false", "boolean"),
    (f"^{re.escape(AUTHENTICATOR.text)}$", "authenticator"),
    (f"^{re.escape(AUTHORISATION.text)}$", "authorisation service"),
)


def page() -> str:
    """The whole page."""
    declared = _core.setting_declarations()
    alike, module_alone, container_alone = _in_common(
        list(_config_rows(ConsensusModuleConfig)), list(_config_rows(ContainerConfig))
    )
    parts = (
        (_head(declared["driver"]), _driver_rows(declared["driver"])),
        (_ALIASES, _alias_rows(declared["driver_aliases"])),
        (_INEFFECTIVE, _ineffective_rows(declared["driver_ineffective"])),
        (_CLIENT, _client_rows(declared["client"])),
        (_ARCHIVE + _COLUMNS, _config_rows(ArchiveConfig)),
        (_CLUSTER + _COLUMNS, alike),
        (_MODULE_ALONE + _COLUMNS, module_alone),
        (_CONTAINER + _COLUMNS, container_alone),
        (_BACKUP + _COLUMNS, (row for row in _config_rows(ClusterBackupConfig) if row not in alike)),
        (_CLUSTER_CLIENT + _COLUMNS, _config_rows(ClusterClientConfig)),
    )
    return "".join(head + "".join(rows) for head, rows in parts)


def _head(driver: list[Declaration]) -> str:
    others = [
        f"{_code(setting['environment'])} for {_code(setting['property'])}"
        for setting in driver
        if setting["environment"] != _variable(setting["property"])
    ]
    strategies = _idle_rule(driver).removeprefix("must be one of ").split(", or ", 1)[0]
    exceptions = f", but {', '.join(others)}" if others else ""
    words = {
        "EXCEPTIONS": exceptions,
        "IDLE": ", ".join(map(_code, strategies.split(", "))),
        "AUTHENTICATOR": AUTHENTICATOR.text,
        "AUTHORISATION": AUTHORISATION.text,
    }
    return re.sub("|".join(words), lambda word: words[word[0]], _PAGE) + _COLUMNS


def _variable(property_name: str) -> str:
    return property_name.upper().replace(".", "_")


def _idle_rule(driver: list[Declaration]) -> str:
    (rule,) = {setting["rule"] for setting in driver if setting["property"].endswith("idle.strategy")}
    return str(rule)


def _in_common(one: list[str], other: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The rows that both have, and those that each has alone."""
    return (
        [row for row in one if row in other],
        [row for row in one if row not in other],
        [row for row in other if row not in one],
    )


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


# Below each other: columns beside each other would leave no room for the meaning.
def _names(property_name: str | None, keyword: str) -> str:
    return "<br>".join(_code(name) for name in (property_name, keyword) if name)


def _values(default: object, rule: str) -> str:
    return f"{_code(default)}<br>{rule}"


def _code(text: object) -> str:
    # A bar would end the cell of a table.
    return f"`{text}`".replace("|", r"\|") if text not in (None, "", b"") else "unset"


def _driver_rows(declared: list[Declaration]) -> Iterator[str]:
    idle = _idle_rule(declared)
    for setting in sorted(declared, key=lambda setting: setting["property"]):
        yield _row(
            _names(setting["property"], setting["keyword"]),
            _values(
                setting["default"], "idle strategy" if setting["rule"] == idle else _short(setting["rule"])
            ),
            setting["meaning"],
        )


def _short(rule: str) -> str:
    rule = rule.removeprefix("must be ")
    for pattern, replacement in _SHORTER:
        rule = re.sub(pattern, replacement, rule)
    return rule


def _alias_rows(declared: list[Declaration]) -> Iterator[str]:
    for alias in sorted(declared, key=lambda alias: alias["property"]):
        yield _row(_code(alias["property"]), _code(alias["sets"]), _short(alias["rule"]))


def _ineffective_rows(declared: list[Declaration]) -> Iterator[str]:
    for setting in sorted(declared, key=lambda setting: setting["property"]):
        accepted = ", ".join(_code(value) for value in setting["accepted"]) or "none"
        other = "refused" if setting["is_refused"] else "noted"
        yield _row(_code(setting["property"]), accepted, other, setting["reason"])


def _client_rows(declared: list[Declaration]) -> Iterator[str]:
    meaning = "The driver's directory; unset: `AERON_DIR`, else `/dev/shm/aeron-USER`."
    yield _row("`directory`", _values(None, "path"), meaning)
    for setting in declared:
        values = _values(_keyword_value(setting), _short(setting["rule"]))
        yield _row(_code(setting["keyword"]), values, setting["meaning"])


def _config_rows(config: type[Any]) -> Iterator[str]:
    fields = dataclasses.fields(config)
    for field in sorted(fields, key=lambda field: field.metadata.get("property", "~")):
        yield _row(
            _names(field.metadata.get("property"), field.name),
            _values(
                _as_property(field.default, field.metadata.get("kind")), _short(field.metadata["rule"].text)
            ),
            # A bar would end the cell.
            field.metadata["meaning"].replace("|", r"\|"),
        )


def _as_property(value: Any, kind: str | None) -> object:
    """A default as the property takes it: `5s`, `64k`."""
    units = {"duration": _UNITS, "size": {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}}.get(kind or "")
    if isinstance(value, bool):
        return str(value).lower()
    if not units or value is None or value <= 0:
        return value
    fitting = [(each, unit) for unit, each in units.items() if value % each == 0]
    each, unit = max(fitting, default=(1, ""))
    return f"{value // each}{unit}"


# --- both ------------------------------------------------------------------------------------------------------

MADE = {
    ROOT / "python" / "headrace" / "_settings" / "keywords.py": module,
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
