"""A path that takes shorter packets than a publisher sends, and whose far end drops their fragments."""

import subprocess

import pytest

import headrace
from headrace.testing import Namespaces
from headrace.tools import CncFile, read_error_log
from tests.helpers import await_true, take
from tests.interop.conftest import our_driver_process

UNAVAILABLE = Namespaces.unavailable()
pytestmark = pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))

NO_REASSEMBLY = "cd /proc/sys/net/ipv4; echo 0 > ipfrag_low_thresh; echo 0 > ipfrag_high_thresh"
OFTEN = {"aeron.timer.interval": "200ms"}


def test_the_sender_says_which_mtu_the_kernel_knows_to_fit() -> None:
    with Namespaces() as pair:
        left, right = pair.left, pair.right
        network = left.address.rpartition(".")[0] + ".0/24"
        route = f"ip route replace {network} dev {left.device} src {left.address} mtu lock 1300"
        subprocess.run(left.command(route.split()), check=True)
        subprocess.run(right.command(["sh", "-c", NO_REASSEMBLY]), check=True)
        with (
            our_driver_process("path-mtu-left", left.command([]), OFTEN) as sends,
            our_driver_process("path-mtu-right", right.command([])) as receives,
            headrace.Client.connect(directory=sends) as sender,
            headrace.Client.connect(directory=receives) as receiver,
        ):
            channel = f"aeron:udp?endpoint={right.address}:7001"
            subscription = receiver.add_subscription(channel, 10)
            publication = sender.add_publication(channel, 10)
            publication.offer_blocking(b"short")
            assert take(subscription, 1) == [b"short"]
            publication.offer_blocking(bytes(1300))

            def told() -> list[str]:
                with CncFile.open(sends) as cnc:
                    return [entry.text for entry in read_error_log(cnc.error_log) if "mtu=1408" in entry.text]

            await_true(told)
            advice = f"the kernel's path MTU to {right.address} is 1300 bytes: use mtu=1248"
            assert advice in told()[0]
            assert not subscription.poll(lambda *_: None)
            fitting = sender.add_exclusive_publication(f"{channel}|mtu=1248", 10)
            fitting.offer_blocking(bytes(1300))
            assert take(subscription, 1) == [bytes(1300)]
