"""`headrace publish`: messages from files, stdin or the command line."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace._base.exceptions import HeadraceError, PublicationTimeoutError
from headrace._base.results import OfferResult
from headrace.cli import options, sources
from headrace.cli.connection import connect, unless_raised
from headrace.cli.output import print_json
from headrace.cli.progress import RateLine

if TYPE_CHECKING:
    from headrace import Publication

# A subscriber that is there already connects sooner.
_SILENT_S = 0.2


@click.command()
@click.argument("source", nargs=-1, type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@options.directory_option
@options.channel_option()
@options.stream_option()
@click.option("--message", "-m", "texts", multiple=True, help="Send this text; may be repeated.")
@click.option(
    "--length",
    "-L",
    type=click.IntRange(min=1),
    help="Split the input into messages of this many bytes, not at line ends.",
)
@options.number_option("--repeat", "-n", default=1, help="Send all messages this many times.")
@click.option(
    "--rate", "-r", type=options.FiniteRange(min=0.001), help="Send at most this many messages a second."
)
@options.timeout_option(10.0, "How long to wait for a subscriber, or under back pressure.")
@click.option("--exclusive", is_flag=True, help="Use an exclusive publication, which is a little faster.")
@options.json_option
def command(
    source: tuple[str, ...],
    directory: Path,
    channel: str,
    stream_id: int,
    texts: tuple[str, ...],
    length: int | None,
    repeat: int,
    rate: float | None,
    timeout_s: float,
    exclusive: bool,
    as_json: bool,
) -> None:
    """Send each line of the named files (- is stdin) as a message; with --length, pieces of that many bytes.

    Waits for a subscriber when it has a message to send. Exit status 1 if none connects within --timeout, or if back
    pressure lasts longer than that.

    \b
    Examples:
      seq 1 1000000 | headrace publish -
      headrace publish access.log errors.log --rate 1000
      headrace publish --message hello --message world
      headrace publish video.raw --length 1376 -c 'aeron:udp?endpoint=10.0.0.7:20121'
      headrace publish - -c aeron:ipc < prices.csv
    """
    if not source and not texts:
        raise click.UsageError("nothing to send: name files, - for stdin, or give --message TEXT")
    if repeat > 1 and sources.STDIN in source:
        raise click.UsageError("--repeat cannot read stdin again; save it to a file first")
    with connect(directory, "publish", unless_raised) as client:
        add = client.add_exclusive_publication if exclusive else client.add_publication
        with add(channel, stream_id) as publication, RateLine("sent", is_shown=not as_json) as line:
            messages = _input(source, texts, length, repeat)
            # A subscriber is waited for when there is a message for it.
            first = list(itertools.islice(messages, 1))
            if first and not _wait_for_subscriber(publication, timeout_s):
                raise TimeoutError(
                    _absence(publication, timeout_s, f"channel={channel} stream_id={stream_id}")
                )
            line.restart_clock()
            try:
                for message in _paced(itertools.chain(first, messages), rate):
                    _send(publication, message, timeout_s)
                    line.add(1, len(message))
                    line.refresh()
            except HeadraceError as refusal:
                raise OSError(f"{refusal}; {line.summary()} before that") from refusal
            except KeyboardInterrupt:
                click.echo(f"ended by a signal; {line.summary()} before that", err=True)
                raise
    if as_json:
        print_json({"messages": line.count, "bytes": line.byte_count, "seconds": line.elapsed_s})
    else:
        click.echo(line.summary(), err=True)


def _absence(publication: Publication, timeout_s: float, stream: str) -> str:
    """Why nothing could be sent."""
    if count := publication.subscriber_count:
        return (
            f"too few receivers for the group connected within {timeout_s:g} s: receivers={count}: fc=min,g:/2 waits "
            f"for 2 of them, one for each receiving driver: {stream}"
        )
    return f"no subscriber connected within {timeout_s:g} s: is one running on the same channel and stream? {stream}"


def _wait_for_subscriber(publication: Publication, timeout_s: float) -> bool:
    """Whether one connects in time. A person who waits longer than a moment is told for what, and until when."""
    if publication.wait_until_connected(min(timeout_s, _SILENT_S)):
        return True
    left_s = timeout_s - _SILENT_S
    if left_s <= 0:
        return False
    if sys.stderr.isatty():
        until = time.strftime("%H:%M:%S", time.localtime(time.time() + left_s))
        stream = f"channel={publication.channel} stream_id={publication.stream_id}"
        click.echo(f"waiting until {until} for a subscriber: {stream}", err=True)
    return publication.wait_until_connected(left_s)


def _send(publication: Publication, message: bytes, timeout_s: float) -> None:
    """Send one message. When the subscriber has left, wait for another one as at the beginning.

    Raises:
        PublicationError: No subscriber came in time, or it made no room in time.
    """
    result = publication.offer(message)
    if not isinstance(result, OfferResult):
        return
    if result is OfferResult.NOT_CONNECTED and not _wait_for_subscriber(publication, timeout_s):
        text = f"the subscriber left, and no other connected within {timeout_s:g} s"
        stream = f"channel={publication.channel} stream_id={publication.stream_id}"
        raise PublicationTimeoutError(f"{text}: {stream}", result)
    publication.offer_blocking(message, timeout_s=timeout_s)


def _input(
    source: tuple[str, ...], texts: tuple[str, ...], length: int | None, repeat: int
) -> Iterator[bytes]:
    for _ in range(repeat):
        # The bytes that were typed, also where they are no UTF-8.
        yield from map(os.fsencode, texts)
        yield from sources.messages(source, length)


def _paced(messages: Iterable[bytes], rate: float | None) -> Iterable[bytes]:
    if rate is None:
        return messages
    return _at_rate(messages, rate)


def _at_rate(messages: Iterable[bytes], rate: float) -> Iterator[bytes]:
    # Against the clock and not against the last message, so that a late one does not make all later ones late.
    start = time.monotonic()
    for number, message in zip(itertools.count(), messages):
        ahead_s = start + number / rate - time.monotonic()
        if ahead_s > 0:
            time.sleep(ahead_s)
        yield message
