"""A key-value store that survives kill -9: a cluster of one in a process of its own, and clients that each write.

The argument is a directory for the cluster's files. A second run on the same directory finds the keys of the first.
"""

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from headrace.cluster import ClientSession, Cluster, ClusterClient, ClusteredService, ClusterNode

# A snapshot is a sequence of messages; none should be larger than an eighth of a term.
KEYS_A_MESSAGE = 1_000


class KeyValueStore(ClusteredService):
    """Each command is a JSON object with ``op``; each answer is one with ``ok`` and ``value``."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def on_start(self, cluster: Cluster, snapshot: Iterable[bytes] | None) -> None:
        for message in snapshot or ():
            self.values.update(json.loads(message))

    def on_session_message(
        self, session: ClientSession | None, timestamp: int, message: bytes, position: int
    ) -> None:
        try:
            answer = self.apply(**json.loads(message))
        except (TypeError, ValueError) as error:
            # A client may send anything. The state has not changed yet.
            answer = {"ok": False, "error": str(error)}
        if session is not None:
            session.offer(json.dumps(answer).encode())

    def apply(self, op: str, key: str, value: Any = None, expected: Any = None) -> dict[str, Any]:
        """Carry out a command and return the answer."""
        there = self.values.get(key)
        if op == "get":
            return {"ok": key in self.values, "value": there}
        if op == "put":
            self.values[key] = value
            return {"ok": True, "value": there}
        if op == "delete":
            return {"ok": self.values.pop(key, None) is not None, "value": there}
        if op == "compare_and_set":
            is_as_expected = there == expected
            if is_as_expected:
                self.values[key] = value
            return {"ok": is_as_expected, "value": there}
        raise ValueError(f"op={op!r}: must be get, put, delete or compare_and_set")

    def on_take_snapshot(self) -> Iterator[bytes]:
        keys = sorted(self.values)
        for start in range(0, len(keys), KEYS_A_MESSAGE):
            part = {key: self.values[key] for key in keys[start : start + KEYS_A_MESSAGE]}
            yield json.dumps(part).encode()


class Store:
    """The commands as a client's methods, one at a time."""

    def __init__(self, client: ClusterClient) -> None:
        self.client = client

    def ask(self, op: str, key: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self.client.offer_blocking(json.dumps({"op": op, "key": key, **arguments}).encode())
        message = self.client.receive(timeout_s=10.0)
        if message is None:
            raise TimeoutError(f"no answer to {op} of {key}")
        answer: dict[str, Any] = json.loads(message.payload)
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def get(self, key: str) -> Any:
        """The value, or ``None`` if the key does not exist."""
        return self.ask("get", key)["value"]

    def put(self, key: str, value: Any) -> None:
        """Set the value."""
        self.ask("put", key, value=value)

    def delete(self, key: str) -> bool:
        """Remove the key; returns whether it existed."""
        return bool(self.ask("delete", key)["ok"])

    def compare_and_set(self, key: str, expected: Any, value: Any) -> bool:
        """Set the value if it is the expected one; returns whether it was."""
        return bool(self.ask("compare_and_set", key, expected=expected, value=value)["ok"])

    def increment(self, key: str) -> None:
        """Read, add and write; start again if another client has written meanwhile."""
        while True:
            value = self.get(key)
            if self.compare_and_set(key, value, (value or 0) + 1):
                return


def serve(directory: str) -> None:
    """Run a node until standard input ends."""
    with ClusterNode(KeyValueStore(), directory=directory, authorisation="ALLOW_ALL") as node:
        node.wait_until_leader()
        print(node.driver.directory, flush=True)
        sys.stdin.read()


@contextlib.contextmanager
def node_process(directory: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A node in another process, and the directory of its driver."""
    command = [sys.executable, __file__, "--serve", str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            driver_directory = process.stdout.readline().strip()
            if not driver_directory:
                raise SystemExit(f"the node's process ended with status {process.wait()}; it printed why")
            yield process, driver_directory
            process.stdin.close()
            process.wait()
        finally:
            process.kill()


def connect(driver_directory: str) -> ClusterClient:
    """Connect to the node in the other process."""
    return ClusterClient.connect(
        directory=driver_directory, ingress_channel="aeron:ipc", egress_channel="aeron:ipc"
    )


def run(directory: str | Path) -> None:
    with node_process(directory) as (process, driver_directory):
        with connect(driver_directory) as one, connect(driver_directory) as other:
            alice, bob = Store(one), Store(other)
            runs = alice.get("runs") or 0
            print(f"runs before this one: {runs}")
            alice.put("colour", "green")
            one.request_snapshot()
            bob.put("shape", "round")
            print("bob reads what alice wrote:", bob.get("colour"))
            alice.put("draft", "...")
            alice.delete("draft")
            # Both want the key; the first in the log gets it.
            print("who gets the lock:", alice.compare_and_set("lock", None, "alice"), end=" ")
            print(bob.compare_and_set("lock", None, "bob"))
            alice.delete("lock")
            for store in (alice, bob) * 50:
                store.increment("visits")
            alice.increment("runs")
            visits = bob.get("visits")
        process.kill()
        process.wait()
        # The killed driver left its shared memory behind.
        shutil.rmtree(driver_directory)
        print(f"killed with {visits} visits")

    with node_process(directory) as (_, driver_directory), connect(driver_directory) as client:
        store = Store(client)
        kept = {key: store.get(key) for key in ("colour", "shape", "draft", "lock", "visits", "runs")}
        print("after the kill:", kept)
        assert kept["visits"] == visits
        assert kept["runs"] == runs + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "directory", nargs="?", help="directory of the cluster's files; default: a temporary one"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)  # the node's process
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.directory)
    elif arguments.directory:
        run(arguments.directory)
    else:
        with tempfile.TemporaryDirectory() as made:
            run(Path(made) / "store")


if __name__ == "__main__":
    main()
