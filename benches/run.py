"""Measures the rows named on the command line, or all of them: `python -m benches.run [NAME ...]`."""

import sys
from pathlib import Path

from rich.console import Console

from benches.processes import PeerUnavailable
from benches.report import Row, keep, show
from benches.rows import ROWS

RESULTS = Path(__file__).resolve().parent.parent / "bench-results"


def main() -> int:
    """Exit status: 0, 1 when a row failed, or 2 when a name is not that of a row."""
    names = sys.argv[1:] or list(ROWS)
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        print(f"no such row: {', '.join(unknown)}; known are: {', '.join(ROWS)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    skipped: dict[str, str] = {}
    failed: list[str] = []
    console = Console(stderr=True)
    for name in names:
        with console.status(f"measuring {name}"):
            try:
                rows.append(ROWS[name]())
            except PeerUnavailable as reason:
                skipped[name] = str(reason)
            # What the other rows found is kept, whatever one of them runs into.
            except Exception:
                console.print_exception()
                failed.append(name)
    show(rows, skipped)
    keep(rows, RESULTS)
    print(f"kept in {RESULTS / 'latest.json'} and {RESULTS / 'ratios.png'}")
    if failed:
        print(f"failed, see above: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
