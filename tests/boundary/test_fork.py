"""Objects made before a fork: refused in the child, untouched in the parent."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.helpers import TIMEOUT_S

pytestmark = pytest.mark.boundary

IN_A_HANDLER = """
import os
import headrace

with headrace.MediaDriver.embedded(threading_mode="SHARED") as driver, driver.connect() as client:
    subscription = client.add_subscription("aeron:ipc?term-length=64k", 1)
    publication = client.add_publication("aeron:ipc?term-length=64k", 1)
    assert publication.wait_until_connected(60) and subscription.wait_until_connected(60)
    for number in range(3):
        publication.offer_blocking(b"%d" % number)
    seen = []

    def handler(payload, header):
        seen.append(payload)
        if len(seen) == 1:
            child = os.fork()
            if child == 0:
                raise SystemExit
            assert os.waitpid(child, 0)[1] == 0

    try:
        while len(seen) < 3:
            subscription.poll(handler, 10)
    except SystemExit:
        os._exit(0)
    assert subscription.poll(handler, 10) == 0
    assert seen == [b"0", b"1", b"2"], seen
"""

PROGRAM = """
import gc, os, sys
import headrace

driver = headrace.MediaDriver.embedded(threading_mode="SHARED")
client = driver.connect()
subscription = client.add_subscription("aeron:ipc?term-length=64k", 1)
publication = client.add_publication("aeron:ipc?term-length=64k", 1)
exclusive = client.add_exclusive_publication("aeron:ipc?term-length=64k", 1)
counter = client.add_counter(1001)
assert publication.wait_until_connected(60) and subscription.wait_until_connected(60)
(image, *_) = subscription.images
claim = publication.try_claim(4)
view = claim.view

child = os.fork()
if child == 0:
    wrong = []
    calls = {
        "offer": lambda: publication.offer(b"x"),
        "offer_blocking": lambda: publication.offer_blocking(b"x"),
        "offer_batch": lambda: publication.offer_batch([b"x"]),
        "try_claim": lambda: publication.try_claim(1),
        "exclusive": lambda: exclusive.offer(b"x"),
        "padding": lambda: exclusive.append_padding(1),
        "commit": claim.commit,
        "poll": lambda: subscription.poll(print),
        "poll_batch": subscription.poll_batch,
        "receive": subscription.receive,
        "image": lambda: image.poll(print),
        "position": lambda: publication.position,
        "counter": lambda: counter.value,
        "add": lambda: client.add_publication("aeron:ipc", 1),
        "client": lambda: client.client_id,
        "driver": lambda: driver.is_terminated,
    }
    for name, call in calls.items():
        try:
            call()
        except headrace.ForkError as error:
            if "new client" not in str(error):
                wrong.append((name, str(error)))
        except BaseException as error:
            wrong.append((name, repr(error)))
        else:
            wrong.append((name, "nothing was raised"))
    # Closing and dropping do nothing: they would speak in the parent's name.
    for thing in (publication, exclusive, subscription, counter, client, driver):
        thing.close()
        repr(thing)
    with headrace.connect(driver.directory) as own:
        own.add_publication("aeron:ipc?term-length=64k", 1).offer_blocking(b"from the child")
    del publication, exclusive, subscription, counter, client, driver, claim, image, calls, call, thing
    gc.collect()
    sys.exit(f"{wrong}" if wrong else 0)

_, status = os.waitpid(child, 0)
view[:] = b"mine"
claim.commit()
seen = []
while len(seen) < 2:
    seen.append(subscription.receive(timeout_s=60).payload)
assert seen == [b"mine", b"from the child"], seen
assert publication.offer(b"still") > 0 and exclusive.offer(b"here") > 0
counter.value = 3
client.close()
driver.close()
assert not os.path.exists(driver.directory)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_is_refused_and_the_parent_goes_on():
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


WAITED_FOR = """
import os, sys, threading
from headrace.spark._own_driver import OwnDriver

own = OwnDriver()
child = os.fork()
if child == 0:
    own.close()
    sys.stdin.readline()
    os._exit(0)
# The shell that tidies up waits for every copy of its pipe to be closed: the child's must be no such copy.
closing = threading.Thread(target=own.close, daemon=True)
closing.start()
closing.join(60)
print("closed" if not closing.is_alive() else "waits for the child", flush=True)
os._exit(os.path.exists(own.driver.directory))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_childs_copy_of_a_pipe_keeps_no_reader_waiting():
    with subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", WAITED_FOR],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "closed\n"
        assert parent.wait(TIMEOUT_S) == 0
        assert parent.stdin is not None
        parent.stdin.close()


def test_a_child_that_a_handler_forks_leaves_the_position_to_its_parent():
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", IN_A_HANDLER],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
