"""The module that every Python process of Spark imports."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest
from benches.processes import ROOT


def test_importing_it_loads_nothing_of_headrace():
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")
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


def test_the_extra_brings_what_stateful_operations_in_pandas_need():
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install '.[spark]'")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (needed,) = [each for each in project["optional-dependencies"]["spark"] if each.startswith("protobuf")]
    # Without it, or with another major version, Spark's worker ends without a word, or warns.
    program = (
        "import pyspark.sql.streaming.proto.StateMessage_pb2, google.protobuf as p; print(p.__version__)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert f"<{int(done.stdout.split('.')[0]) + 1}" in needed
