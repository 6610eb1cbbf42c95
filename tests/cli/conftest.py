"""A directory that looks like a driver's, for the tests of readers and of the commands over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.fake_cnc import a_busy_driver, loss_entry


@pytest.fixture
def driver_directory(tmp_path: Path) -> Path:
    a_busy_driver().write(tmp_path)
    entries = loss_entry(
        4, 1408, 1_699_000_000_000, 1_699_000_001_000, -7, 1001, "aeron:udp?endpoint=a:1", "10.0.0.1:9"
    )
    entries += loss_entry(
        1, 64, 1_699_000_002_000, 1_699_000_002_000, 9, 10, "aeron:udp?endpoint=b:22", "10.0.0.2:90"
    )
    (tmp_path / "loss-report.dat").write_bytes(entries.ljust(1 << 16, b"\0"))
    return tmp_path
