"""Settings as dataclasses: what they become as properties, what they refuse."""

from __future__ import annotations

import dataclasses
import inspect
import os
import pwd
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    Archive,
    ArchiveServer,
    ArchivingMediaDriver,
    ClientConfig,
    ConfigError,
    DriverConfig,
    DriverTimeoutError,
    MediaDriver,
    connect,
    default_directory,
)
from headrace._settings.keywords import (
    ArchiveSettings,
    ClientSettings,
    ConsensusModuleSettings,
    ContainerSettings,
    DriverSettings,
)
from headrace.archive import ArchiveConfig, ArchiveFileError
from headrace.client._program_name import program_name
from headrace.cluster import (
    ClusterClient,
    ClusterClientConfig,
    ClusteredService,
    ClusterNode,
    ConsensusModule,
    ConsensusModuleConfig,
    ContainerConfig,
    ServiceContainer,
)
from headrace.cluster.client.settings import ClusterClientSettings
from headrace.cluster.files.directory import ClusterDirectory
from headrace.tools import CncFile, read_error_log


@pytest.mark.parametrize(
    ("settings", "config"),
    [
        (ArchiveSettings, ArchiveConfig),
        (ConsensusModuleSettings, ConsensusModuleConfig),
        (ContainerSettings, ContainerConfig),
        (ClusterClientSettings, ClusterClientConfig),
    ],
)
def test_every_keyword_is_a_field(settings, config):
    assert set(settings.__annotations__) == {field.name for field in dataclasses.fields(config)}


@pytest.mark.parametrize("owner", [ArchiveServer, ConsensusModule, ServiceContainer, ClusterClient.connect])
def test_no_argument_hides_a_setting(owner):
    arguments = set(inspect.signature(owner).parameters)
    settings = {
        ArchiveServer: ArchiveSettings,
        ConsensusModule: ConsensusModuleSettings,
        ServiceContainer: ContainerSettings,
    }.get(owner, ClusterClientSettings)
    assert not arguments & set(settings.__annotations__)


def test_keywords_and_fields_are_the_same():
    assert set(DriverSettings.__annotations__) == {
        field.name for field in dataclasses.fields(DriverConfig) if field.name != "properties"
    }
    assert set(ClientSettings.__annotations__) == {
        field.name for field in dataclasses.fields(ClientConfig) if field.name != "directory"
    }


def test_each_setting_has_a_property_of_its_own():
    properties = [
        field.metadata["property"] for field in dataclasses.fields(DriverConfig) if field.name != "properties"
    ]
    assert len(properties) == len(set(properties)) > 50
    assert all(name.startswith("aeron.") for name in properties)


def test_what_module_and_containers_share_is_declared_once():
    own = [own_settings(config) for config in (ConsensusModuleConfig, ContainerConfig)]
    # The one property that stands for a stream of each.
    assert own[0] & own[1] == {"aeron.cluster.snapshot.stream.id"}


def own_settings(config):
    """The property, or else the name, of each field that a class declares itself."""
    declared = inspect.get_annotations(config)
    return {
        item.metadata.get("property", item.name)
        for item in dataclasses.fields(config)
        if item.name in declared
    }


def test_only_what_was_given_becomes_a_property():
    assert DriverConfig().to_properties() == {}
    config = DriverConfig(
        directory=Path("/tmp/driver"),
        threading_mode="shared",
        dir_delete_on_start=True,
        reliable_stream=False,
        timer_interval_ns=5,
        conductor_idle_strategy="yield",
        properties={"aeron.mtu.length": "8k", "aeron.timer.interval": "1s"},
    )
    assert config.to_properties() == {
        "aeron.dir": "/tmp/driver",
        "aeron.threading.mode": "SHARED",
        "aeron.dir.delete.on.start": "true",
        "aeron.reliable.stream": "false",
        "aeron.timer.interval": "5ns",
        "aeron.conductor.idle.strategy": "yield",
        "aeron.mtu.length": "8k",
    }


@pytest.mark.parametrize("value", [1.5, b"/tmp", []])
def test_a_value_of_another_type_is_refused(value):
    with pytest.raises(ConfigError, match="mtu_length") as refusal:
        DriverConfig(mtu_length=value).to_properties()
    assert refusal.value.setting == "mtu_length"
    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize("value", [5, True, b"/tmp"])
def test_a_directory_is_a_path(value):
    with pytest.raises(ConfigError, match="must be a path"):
        DriverConfig(directory=value).to_properties()


@pytest.mark.parametrize("value", [-1, 1.5, True, "1", 2**63])
def test_a_client_duration_is_a_whole_number(value):
    with pytest.raises(ConfigError, match="idle_sleep_ns"):
        ClientConfig(idle_sleep_ns=value)


def test_configs_cannot_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        DriverConfig().mtu_length = 1  # type: ignore[misc]


def test_the_default_directory_follows_the_environment(monkeypatch):
    monkeypatch.setenv("AERON_DIR", "/tmp/elsewhere")
    assert default_directory() == "/tmp/elsewhere"
    monkeypatch.delenv("AERON_DIR")
    monkeypatch.setenv("USER", "ada")
    assert default_directory().endswith("/aeron-ada")


def test_an_account_without_a_name_has_a_default_directory(monkeypatch):
    monkeypatch.delenv("AERON_DIR", raising=False)
    monkeypatch.delenv("USER", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert default_directory().endswith("/aeron-default")


SEGMENT_LENGTH = "aeron.archive.segment.file.length"


@pytest.mark.parametrize(
    ("make", "meant"),
    [
        (lambda: MediaDriver.embedded(threding_mode="SHARED"), "threading_mode"),
        (lambda: MediaDriver.embedded(properties={"aeron.thredaing.mode": "SHARED"}), "aeron.threading.mode"),
        (lambda: MediaDriver.embedded(dir="/nowhere"), "directory"),
        (lambda: MediaDriver.embedded(term_length=65536), "term_buffer_length"),
        (lambda: MediaDriver.embedded(properties={"aeron.term.length": "64k"}), "aeron.term.buffer.length"),
        (lambda: MediaDriver.embedded(ipc_term_length=65536), "ipc_term_buffer_length"),
        (lambda: MediaDriver.embedded(mtu=1408), "mtu_length"),
        (lambda: connect(aeron_dir="/nowhere"), "directory"),
        (lambda: connect("/nowhere", driver_timout_ms=1), "driver_timeout_ms"),
        (lambda: ArchiveServer(archive_dirctory="x"), "archive_directory"),
        (lambda: ArchivingMediaDriver.embedded(archive_dir="x"), "archive_directory"),
        (lambda: ArchiveServer(propertys={}), "properties"),
        (lambda: ArchiveServer(properties={"aeron.archive.segment.file.lenght": "1m"}), SEGMENT_LENGTH),
        (lambda: Archive.connect(message_timout_s=1), "message_timeout_s"),
        (lambda: connect("/nowhere", on_eror=print), "on_error"),
        (lambda: connect("/nowhere", on_disconect=print), "on_disconnect"),
    ],
)
def test_a_misspelt_setting_is_refused_with_the_nearest_name(make, meant):
    with pytest.raises(ConfigError, match=rf", did you mean {meant}\?$"):
        make()


def test_a_misspelt_variable_is_told(monkeypatch, caplog):
    monkeypatch.setenv("AERON_THREDAING_MODE", "SHARED")
    monkeypatch.setenv("AERON_CLUSTER_MEMBER_ID", "1")
    doubt = "AERON_THREDAING_MODE=SHARED has no effect: no setting has this name, did you mean AERON_THREADING_MODE?"
    with (
        caplog.at_level("WARNING", "headrace.driver"),
        MediaDriver.embedded(threading_mode="SHARED") as driver,
        CncFile.open(Path(driver.directory)) as cnc,
    ):
        assert [entry.text for entry in read_error_log(cnc.error_log)] == [f"WARN - {doubt}"]
    assert [record for record in caplog.messages if doubt in record]


def test_a_misspelt_variable_of_an_archive_is_told(monkeypatch, caplog, tmp_path):
    """In its error log and on its logger; names of other programs, and nonsense, are not told."""
    monkeypatch.setenv("AERON_ARCHIVE_FILE_SYNC_LEVLE", "1")
    monkeypatch.setenv("AERON_ARCHIVE_ZZZ", "1")
    doubt = (
        "AERON_ARCHIVE_FILE_SYNC_LEVLE=1 has no effect: no setting has this name, "
        "did you mean AERON_ARCHIVE_FILE_SYNC_LEVEL?"
    )
    with (
        caplog.at_level("WARNING", "headrace.archive"),
        ArchivingMediaDriver.embedded(archive_directory=tmp_path),
    ):
        pass
    assert [record for record in caplog.messages if "AERON_ARCHIVE" in record] == [f"WARN - {doubt}"]


def test_a_misspelt_variable_of_a_cluster_is_told(monkeypatch, caplog, tmp_path):
    """By module and container, each of its own and once; what other parts of a cluster take is none."""
    meant = {
        "AERON_CLUSTER_SESION_TIMEOUT": "AERON_CLUSTER_SESSION_TIMEOUT",
        "AERON_CLUSTER_SERVICE_RESPONDR": "AERON_CLUSTER_SERVICE_RESPONDER",
    }
    for name in (*meant, "AERON_CLUSTER_EGRESS_STREAM_ID", "AERON_CLUSTER_SERVICE_CYCLE_THRESHOLD"):
        monkeypatch.setenv(name, "1")
    with caplog.at_level("WARNING", "headrace.cluster"), ClusterNode(ClusteredService(), directory=tmp_path):
        pass
    assert [record for record in caplog.messages if "AERON_CLUSTER" in record] == [
        f"WARN - {name}=1 has no effect: no setting has this name, did you mean {other}?"
        for name, other in meant.items()
    ]
    for entries in ClusterDirectory(tmp_path / "cluster").errors().values():
        (entry,) = read_error_log(entries)
        assert "has no effect" in entry.text


def test_a_directory_that_cannot_be_made_is_told(tmp_path):
    """What was to be created, and why it was not."""
    rule = "cannot create the directory /proc/x/y for an archive's files: No such file or directory"
    with pytest.raises(ArchiveFileError, match=rule), MediaDriver.embedded() as driver:
        ArchiveServer(driver=driver, archive_directory="/proc/x/y", control_channel_enabled=False)


@pytest.mark.parametrize("value", [5, b"/tmp", "", "a\0b"])
def test_a_client_needs_a_path(value):
    with pytest.raises(ConfigError, match=r"directory=.*: must be a path"):
        connect(value)


def test_an_error_shows_the_beginning_of_a_long_value():
    for make in (
        lambda: connect("x" * 100_000 + "\0"),
        lambda: connect("/nowhere", **{"x" * 100_000: "y" * 100_000}),
        lambda: DriverConfig(mtu_length=[0] * 100_000).to_properties(),
        lambda: MediaDriver.embedded(properties={"aeron.mtu.length": "x" * 100_000}),
        lambda: MediaDriver.embedded(properties={"x" * 100_000: "y"}),
    ):
        with pytest.raises(ConfigError, match=r"\.\.\. \(\d{6} characters\)") as refusal:
            make()
        assert len(str(refusal.value)) < 600
        assert len(refusal.value.value) < 200


@pytest.mark.parametrize("name", ["\x00", "a\nb", "é", "x" * 101])
def test_a_client_name_is_printable(media_driver, name):
    with pytest.raises(ConfigError, match="must be printable ASCII of at most 100 characters") as refusal:
        media_driver.connect(client_name=name)
    assert str(refusal.value).isprintable()
    with media_driver.connect() as client, pytest.raises(ConfigError, match="printable ASCII"):
        client.add_counter(1000, label=f"{name}{name * 400}")


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("/opt/ticker.py", "ticker.py"),
        ("/opt/feeds/__main__.py", "feeds"),
        ("-c", "python"),
        ("", "python"),
        ("/opt/kurs-\u00e9\n.py", "kurs-??.py"),
        ("x" * 300, "x" * 80),
    ],
)
def test_a_client_without_a_name_is_called_by_its_program(
    monkeypatch: pytest.MonkeyPatch, argument: str, name: str
) -> None:
    monkeypatch.setattr(sys, "argv", [argument])
    assert program_name() == f"{name} pid={os.getpid()}"


@pytest.mark.parametrize("arguments", [[], [None], [b"x"], None])
def test_a_client_of_a_program_without_arguments_is_called_python(
    monkeypatch: pytest.MonkeyPatch, arguments: object
) -> None:
    monkeypatch.setattr(sys, "argv", arguments)
    assert program_name() == f"python pid={os.getpid()}"
    monkeypatch.delattr(sys, "argv")
    assert program_name() == f"python pid={os.getpid()}"


@pytest.mark.parametrize("properties", [{"a\udcff": "1"}, {"aeron.term.buffer.length": 65536}])
def test_properties_that_are_no_text_are_refused_by_name(properties: dict[str, Any]) -> None:
    with pytest.raises(
        ConfigError, match=r"^(property='a.udcff'|aeron.term.buffer.length=65536): must be text"
    ):
        MediaDriver.embedded(properties=properties)


def test_no_memory_for_images_is_refused():
    with pytest.raises(ConfigError, match=r"image\.memory\.limit=0: must be a size from 196k"):
        MediaDriver.embedded(image_memory_limit=0)


@pytest.mark.parametrize("nanoseconds", [0, 1, 3])
def test_times_below_a_microsecond_are_one_as_the_specification_says(nanoseconds):
    with MediaDriver.embedded(
        threading_mode="SHARED",
        image_liveness_timeout_ns=nanoseconds,
        publication_connection_timeout_ns=nanoseconds,
    ) as driver:
        assert driver.settings["aeron.image.liveness.timeout"] == "1us"
        assert driver.settings["aeron.publication.connection.timeout"] == "1us"


def test_the_time_out_of_a_connection_reads_as_one_sentence(tmp_path):
    with pytest.raises(DriverTimeoutError) as absent:
        connect(tmp_path, driver_timeout_ms=1)
    assert "?" not in str(absent.value)
    assert "driver_timeout_ms=1; start one with `headrace driver" in str(absent.value)
    assert str(absent.value).endswith(f" or headrace.MediaDriver(directory={str(tmp_path)!r})")
