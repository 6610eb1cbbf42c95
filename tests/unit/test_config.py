"""Settings as dataclasses: what they become as properties, what they refuse."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from headrace import ClientConfig, ConfigError, DriverConfig, default_directory
from headrace._config import ClientSettings, DriverSettings


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
        "aeron.timer.interval": "5",
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
