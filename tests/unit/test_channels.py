"""Channels that look wrong are told on the client's logger."""

import logging

import pytest

from headrace.client._channels import check_channel


@pytest.mark.parametrize(
    ("param", "told"),
    [
        ("term-lenght=64k", "is unknown and has no effect, did you mean term-length?"),
        ("relaible=false", "is unknown and has no effect, did you mean reliable?"),
        ("zzzzzz=1", "is unknown and has no effect, channel="),
        ("eos=yes", "is neither true nor false"),
        ("control-mode=dynamc", "and has no effect, did you mean dynamic?"),
        ("control-mode=manual", "has no effect here: an IPC channel has no network"),
        ("group=yes", "counts as false"),
    ],
)
def test_a_parameter_without_its_effect_is_told(
    param: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning on `headrace.client` names the parameter and the nearest known one."""
    with caplog.at_level(logging.WARNING, "headrace.client"):
        check_channel(f"aeron:ipc?alias=mine|{param}|term-length=64k", "publication")
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert param in record.getMessage()
    assert told in record.getMessage()


@pytest.mark.parametrize(
    "channel",
    [
        "aeron:ipc",
        "aeron:ipc?",
        "aeron-spy:aeron:udp?endpoint=localhost:1|group=infer|reliable=false",
        "?|=|",
    ],
)
def test_other_channels_leave_no_doubt(channel: str, caplog: pytest.LogCaptureFixture) -> None:
    """What is right, and what the driver refuses anyway, is not told."""
    with caplog.at_level(logging.WARNING, "headrace.client"):
        check_channel(channel, "subscription")
    assert caplog.records == []


@pytest.mark.parametrize("use", ["receive destination", "send destination"])
def test_the_interface_of_a_group_that_is_a_destination_counts(
    caplog: pytest.LogCaptureFixture, use: str
) -> None:
    with caplog.at_level(logging.WARNING, "headrace.client"):
        check_channel("aeron:udp?endpoint=239.255.42.1:9000|interface=127.0.0.1", use)
    assert caplog.records == []


def test_a_destination_says_nothing_of_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    """What belongs to the channel that it is added to."""
    with caplog.at_level(logging.WARNING, "headrace.client"):
        check_channel("aeron:udp?endpoint=localhost:1|term-length=64k", "send destination")
    assert "term-length=64k has no effect here" in caplog.text
