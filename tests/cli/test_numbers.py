"""Numbers that are none, where an option wants a time."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from headrace.cli.app import app


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize(
    "words", ["stat --interval", "errors --interval", "publish --rate", "subscribe --timeout"]
)
def test_a_time_is_a_finite_number(words: str, number: str) -> None:
    """It is refused before anything is looked at: with status 2 and the value."""
    result = CliRunner().invoke(app, [*words.split(), number])
    assert result.exit_code == 2, result.output
    assert number in result.output
