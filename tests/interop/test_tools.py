"""(e) The reference's tools and samples against our driver's directory."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from benches.processes import JavaPeer, background

import headrace
from headrace.testing import Conditions, Relay
from tests.helpers import TIMEOUT_S
from tests.ports import free_endpoint, free_port

pytestmark = pytest.mark.interop

UDP = f"aeron:udp?endpoint={free_endpoint()}"
LOSSY_PORT = free_port()


def run_tool(java: JavaPeer, name: str, directory: Path, *args: str, **properties: str) -> str:
    """What a tool or sample printed; it must end by itself with status 0."""
    settings = {"aeron.dir": str(directory)} | {
        key.replace("_", "."): value for key, value in properties.items()
    }
    command = java.command(f"io.aeron.samples.{name}", *args, properties=settings)
    finished = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@contextmanager
def a_stream(directory: Path) -> Iterator[None]:
    """One message over UDP, and its publication and subscription kept open."""
    with (
        headrace.Client.connect(directory=directory) as client,
        client.add_subscription(UDP, 42) as subscription,
        client.add_publication(UDP, 42) as publication,
    ):
        publication.offer_blocking(b"seen by the tools", timeout_s=TIMEOUT_S)
        idle = headrace.BackoffIdleStrategy()
        while not subscription.poll(lambda payload, header: None, 1):
            idle.idle()
        yield


def test_aeron_stat_shows_our_counters(java: JavaPeer, our_driver: Path) -> None:
    """Labels and values are where the tool looks for them."""
    with a_stream(our_driver):
        text = run_tool(java, "AeronStat", our_driver, "watch=false")
    for label in ("Bytes sent", "Status Messages received", "Control protocol version"):
        assert label in text
    for name in ("pub-pos (concurrent)", "pub-lmt", "snd-pos", "snd-lmt", "sub-pos", "rcv-hwm", "rcv-pos"):
        assert re.search(rf"{re.escape(name)}: \d+ -?\d+ 42 {re.escape(UDP)}", text), (
            f"{name} is missing:\n{text}"
        )
    assert re.search(r"snd-channel: .* 127\.0\.0\.1:\d+", text)
    assert "client-heartbeat: id=" in text


def test_stream_stat_shows_our_streams(java: JavaPeer, our_driver: Path) -> None:
    """One line a stream with all its positions."""
    with a_stream(our_driver):
        text = run_tool(java, "StreamStat", our_driver)
    assert re.search(rf"streamId=42 channel={re.escape(UDP)} : .*pub-pos.*sub-pos", text, re.DOTALL), text


def test_error_stat_shows_our_errors(java: JavaPeer, our_driver: Path) -> None:
    """A refused command is in the distinct error log."""
    with headrace.Client.connect(directory=our_driver) as client, pytest.raises(headrace.RegistrationError):
        client.add_publication("aeron:udp?endpoint=127.0.0.1:0", 1)
    text = run_tool(java, "ErrorStat", our_driver)
    assert "endpoint has port=0 for publication" in text
    assert "1 distinct errors observed" in text


def test_loss_stat_reads_our_report(java: JavaPeer, our_driver: Path) -> None:
    """Empty while nothing is lost; then the stream that lost, from whom, and how much."""
    with a_stream(our_driver):
        assert "0 loss entries" in run_tool(java, "LossStat", our_driver)
    with (
        Relay(("127.0.0.1", LOSSY_PORT), forward=Conditions(loss=0.2), seed=20_261) as relay,
        headrace.Client.connect(directory=our_driver) as client,
        client.add_subscription(f"aeron:udp?endpoint=127.0.0.1:{LOSSY_PORT}", 43) as subscription,
        client.add_publication(f"aeron:udp?endpoint={relay.endpoint}", 43) as publication,
    ):
        for _ in range(200):
            publication.offer_blocking(bytes(1000), timeout_s=TIMEOUT_S)
            assert subscription.receive(timeout_s=TIMEOUT_S) is not None
        assert relay.forward.dropped > 0
        text = run_tool(java, "LossStat", our_driver)
    # Observations, bytes lost, first and last time, session, stream, channel, source.
    assert re.search(
        rf"^[1-9]\d*,[1-9]\d*,.*,{publication.session_id},43,aeron:udp\?endpoint=127\.0\.0\.1:{LOSSY_PORT},",
        text,
        re.M,
    ), text


def test_our_readers_read_the_java_driver(java_driver: Path) -> None:
    """`headrace stat` and its siblings on the directory of an unmodified driver."""

    def read(command: str) -> dict[str, Any]:
        line = subprocess.run(
            [sys.executable, "-m", "headrace", command, "--dir", java_driver, "--json", "--once"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        ).stdout
        values: dict[str, Any] = json.loads(line)
        return values

    with a_stream(java_driver), headrace.Client.connect(directory=java_driver) as client:
        with pytest.raises(headrace.RegistrationError):
            client.add_publication("aeron:udp?endpoint=127.0.0.1:0", 1)
        stat = read("stat")
        assert stat["is_alive"]
        values = {counter["label"]: counter["value"] for counter in stat["counters"]}
        assert values["Bytes sent"] > 0
        types = {counter["type"] for counter in stat["counters"] if counter.get("stream_id") == 42}
        assert {"pub-pos", "pub-lmt", "snd-pos", "snd-lmt", "rcv-hwm", "rcv-pos", "sub-pos"} <= types
        (stream,) = read("streams")["streams"]
        assert (stream["stream_id"], stream["channel"]) == (42, UDP)
        assert stream["publisher_position"] == stream["receiver_position"] > 0
        (error,) = read("errors")["errors"]
        assert "port=0" in error["text"]
        assert read("loss")["losses"] == []


def test_ping_and_pong(java: JavaPeer, our_driver: Path) -> None:
    """The latency samples complete on our driver."""
    settings = {
        "aeron.dir": str(our_driver),
        "aeron.sample.messages": "500",
        "aeron.sample.warmup.messages": "100",
        "aeron.sample.warmup.iterations": "1",
        "aeron.sample.idleStrategy": "org.agrona.concurrent.BackoffIdleStrategy",
    }
    with background(java.command("io.aeron.samples.Pong", properties=settings)):
        command = java.command("io.aeron.samples.Ping", properties=settings)
        text = subprocess.run(
            command, input="n\n", capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        ).stdout
    assert "Histogram of RTT latencies" in text


def test_basic_publisher_and_rate_subscriber(java: JavaPeer, our_driver: Path) -> None:
    """The first samples a newcomer runs."""
    settings = {"aeron.dir": str(our_driver), "aeron.sample.messages": "3", "aeron.sample.lingerTimeout": "0"}
    with background(java.command("io.aeron.samples.RateSubscriber", properties=settings)):
        command = java.command("io.aeron.samples.BasicPublisher", properties=settings)
        text = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout
    assert text.count("Offering") == 3
    assert "Done sending." in text


def test_streaming_publisher_and_rate_subscriber(java: JavaPeer, our_driver: Path) -> None:
    """The throughput samples stream half a million messages through our driver.

    The published `EmbeddedThroughput` launches its own driver whatever `aeron.sample.embeddedMediaDriver` says and
    refuses a directory in use, so its two halves stand in for it: the samples that do the same with a driver beside.
    """
    settings = {
        "aeron.dir": str(our_driver),
        "aeron.sample.embeddedMediaDriver": "false",
        "aeron.sample.messages": "500000",
        "aeron.sample.idleStrategy": "org.agrona.concurrent.BackoffIdleStrategy",
    }
    with background(java.command("io.aeron.samples.RateSubscriber", properties=settings)):
        command = java.command("io.aeron.samples.StreamingPublisher", properties=settings)
        text = subprocess.run(
            command, input="n\n", capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        ).stdout
    assert "Done streaming" in text
