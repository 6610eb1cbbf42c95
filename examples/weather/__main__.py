"""From a live stream to a Spark result: record, read, aggregate, draw. `python examples/weather [RESULTS]`."""

import argparse
import sys
from pathlib import Path

try:
    import analyse
    import pandas as pd
    import plot
    import record
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import DataFrame
except ModuleNotFoundError as missing:
    command = "pip install '.[spark,demo]' in a clone of Headrace"
    sys.exit(f"error: {missing}; install what this example needs: {command}")

import headrace

NOT_ANALYSED = 3  # exit status when there is a recording, and no Java to analyse it


def main() -> int:
    parser = argparse.ArgumentParser(prog="python examples/weather", description=__doc__)
    parser.add_argument("results", nargs="?", type=Path, default=Path("weather-results"))
    results = parser.parse_args().results
    archive, log = results / "archive", results / "spark.log"
    try:
        results.mkdir(parents=True, exist_ok=True)
        print("recording a year of hourly temperatures ...", flush=True)
        recordings = record.record(archive)
    except (OSError, headrace.HeadraceError) as failure:
        sys.exit(f"error: {failure}")
    print(f"recordings {' and '.join(map(str, recordings))} in {archive}")
    print("starting Spark, and reading them with it ...", flush=True)
    try:
        with analyse.session(log) as spark:
            report(analyse.load(spark, archive, recordings), results)
    except PySparkRuntimeError as failure:
        if failure.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        print(f"Spark did not start, so this ends with the recording. {log} has the reason.")
        print("It needs Java 17 or later, on the PATH or at JAVA_HOME: apt install openjdk-17-jre-headless")
        return NOT_ANALYSED
    return 0


def report(stream: analyse.Stream, results: Path) -> None:
    """Write the tables and the picture, and print a summary."""
    weather = saved(analyse.weather_by_day(stream), results / "weather.parquet")
    latency = saved(analyse.latency_by_window(stream), results / "latency.parquet")
    gaps = saved(analyse.gaps(stream), results / "gaps.parquet")
    overall = analyse.deliveries(stream).agg(*analyse.at_percentiles(50, 90, 99, 99.9)).toPandas()
    plot.save(weather, latency, int(gaps["missing"].sum()), results / "weather.png")

    print("\nTemperatures, °F")
    cities = weather.groupby("city")
    by_city = cities.agg({"readings": "sum", "low": "min", "mean": "mean", "high": "max"})
    print(by_city.reset_index().to_string(index=False, float_format="{:.1f}".format))
    print("\nLatencies from publisher to receiver, microseconds")
    print(overall.to_string(index=False, float_format="{:.1f}".format))
    print(f"\nGaps in the sequence numbers: {len(gaps)}, readings missing: {gaps['missing'].sum()}")
    if len(gaps):
        print(gaps.to_string(index=False))
    print("\nFiles")
    for name in ("weather.parquet", "latency.parquet", "gaps.parquet", "weather.png"):
        print(f"  {results / name}")


def saved(table: DataFrame, path: Path) -> pd.DataFrame:
    """Write a table as Parquet and read it back."""
    table.write.mode("overwrite").parquet(str(path))
    return pd.read_parquet(path)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
