"""The module that every Python process of Spark imports."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_importing_it_loads_nothing_of_headrace():
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'headrace[spark]'")
    program = (
        "import pyspark_headrace, sys; "
        "print(pyspark_headrace.DefaultSource.name(), [name for name in sys.modules if name.startswith('headrace')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "headrace []\n"


def test_headrace_spark_can_be_imported_without_pyspark():
    program = "import sys; sys.modules['pyspark'] = None; import headrace.spark; print('fine')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "fine\n"
