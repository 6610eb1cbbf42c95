"""Clients that reach each other over sockets, each on a driver of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import headrace

NewClient = Callable[[], headrace.Client]


@pytest.fixture
def new_client() -> Iterator[NewClient]:
    """A client of a driver of its own."""
    with ExitStack() as stack:

        def connect() -> headrace.Client:
            driver = stack.enter_context(headrace.MediaDriver.embedded(threading_mode="SHARED"))
            return stack.enter_context(driver.connect())

        yield connect
