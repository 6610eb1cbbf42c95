"""A publisher that waits until each message is safe: one message, a pause, the next.

usage: durable_peer.py archive DIR CHANNEL SAMPLES [CONTROL_CHANNEL_OF_A_SECOND_ARCHIVE]
       durable_peer.py kafka BROKER SAMPLES
"""

import sys
import time
from collections.abc import Callable

MESSAGE = b"x" * 100
STREAM_ID = 1007
WARM_UP = 500
PAUSE_S = 0.001
TIMEOUT_S = 30.0


def paced(samples: int, publish: Callable[[], object]) -> None:
    """Times `publish` and prints one duration in nanoseconds a line."""
    durations = []
    for _ in range(WARM_UP + samples):
        start = time.perf_counter_ns()
        publish()
        durations.append(time.perf_counter_ns() - start)
        time.sleep(PAUSE_S)
    print(*durations[WARM_UP:], sep="\n")


def archive(directory: str, channel: str, samples: str, control_channel: str | None = None) -> None:
    """Each message recorded by the archive of the driver, and by a second one if there is one."""
    import headrace
    from headrace.archive import SourceLocation

    with headrace.connect(directory) as client, headrace.Archive.connect(client) as first:
        second = None
        if control_channel is not None:
            second = headrace.Archive.connect(
                client, control_channel=control_channel, response_channel="aeron:udp?endpoint=127.0.0.1:0"
            )
            second.start_recording(channel, STREAM_ID, location=SourceLocation.REMOTE)
        with first.add_durable_publication(channel, STREAM_ID) as publication:
            if second is not None:
                publication.add_copy(second)
            paced(int(samples), lambda: publication.publish(MESSAGE, timeout_s=TIMEOUT_S))
        if second is not None:
            second.close()


def kafka(broker: str, samples: str) -> None:
    """Each message acknowledged by the broker."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker, "acks": "all", "linger.ms": 0})

    def publish() -> None:
        answers: list[object] = []
        producer.produce("durable", MESSAGE, on_delivery=lambda error, _: answers.append(error))
        while not answers:
            producer.poll(TIMEOUT_S)
        if answers != [None]:
            sys.exit(f"the broker refused a message: {answers[0]}")

    paced(int(samples), publish)


if len(sys.argv) < 4:
    sys.exit(__doc__)
{"archive": archive, "kafka": kafka}[sys.argv[1]](*sys.argv[2:])
