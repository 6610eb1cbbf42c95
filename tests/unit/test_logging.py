"""What other programs sent, in the entries of the package's loggers."""

from __future__ import annotations

import logging

import pytest

from headrace._base import logging as _logging


@pytest.mark.parametrize("name", _logging.__all__)
def test_an_entry_is_one_line_whatever_a_stranger_sent(name, caplog):
    logger: logging.Logger = getattr(_logging, name)
    hostile = "x\n2026-11-25 ERROR forged\r\x1b[31m\u202e\u2028\x9b"
    with caplog.at_level(logging.WARNING, logger=logger.name):
        logger.warning("rejected: %s, count=%d, because of %s", hostile, 3, ValueError(hostile))
        logger.warning("no arguments\tat all")
        logger.warning("named: %(text)s", {"text": "kept"})
    texts = [record.getMessage() for record in caplog.records]
    assert texts[0].count("x␊2026-11-25 ERROR forged␍␛[31m\ufffd\ufffd\ufffd") == 2
    assert ", count=3, because of " in texts[0]
    assert texts[0].isprintable()
    assert texts[1:] == ["no arguments\tat all", "named: kept"]
