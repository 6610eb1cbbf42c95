"""Sessions that wait as long as their tests do."""

from __future__ import annotations

import pytest

from headrace.archive import ArchiveClientConfig
from tests.helpers import TIMEOUT_S


@pytest.fixture(autouse=True)
def patient_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crowded machine may take longer over an answer than the ten seconds that a session waits by default."""
    defaults = ArchiveClientConfig.__init__.__kwdefaults__
    assert "message_timeout_s" in defaults
    monkeypatch.setitem(defaults, "message_timeout_s", TIMEOUT_S)
