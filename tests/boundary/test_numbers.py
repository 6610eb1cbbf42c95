"""Numbers that do not fit: each names the argument, the value and what is allowed."""

from __future__ import annotations

import pytest

import headrace

pytestmark = pytest.mark.boundary

COUNT = "must be a whole number from 0 to 2**64 - 1"
ID = "must be a whole number from -2**31 to 2**31 - 1"
LONG = "must be a whole number from -2**63 to 2**63 - 1"
PAYLOAD = "must be a whole number from 0 to max_payload_length"


def ignore(*_):
    """A handler."""


SUBSCRIPTION = {
    "poll": (lambda reader: reader.poll(ignore, -1), "limit", -1, COUNT),
    "poll, too many": (lambda reader: reader.poll(ignore, 2**64), "limit", 2**64, COUNT),
    "controlled_poll": (lambda reader: reader.controlled_poll(ignore, -1), "limit", -1, COUNT),
    "block_poll": (lambda reader: reader.block_poll(ignore, -5), "limit_bytes", -5, COUNT),
    "poll_batch": (lambda reader: reader.poll_batch(-1), "limit", -1, COUNT),
}
IMAGE = SUBSCRIPTION | {
    "bounded_poll": (lambda image: image.bounded_poll(ignore, 0, -1), "limit", -1, COUNT),
    "bounded_poll, position": (
        lambda image: image.bounded_poll(ignore, 2**63),
        "limit_position",
        2**63,
        LONG,
    ),
    "controlled_poll, position": (
        lambda image: image.controlled_poll(ignore, limit_position=2**63),
        "limit_position",
        2**63,
        LONG,
    ),
}
PUBLICATION = {
    "try_claim": (lambda publication: publication.try_claim(-1), "length", -1, PAYLOAD),
    "claim_blocking": (lambda publication: publication.claim_blocking(2**64), "length", 2**64, PAYLOAD),
    "append_padding": (lambda publication: publication.append_padding(-1), "length", -1, COUNT),
}
CLIENT = {
    "publication": (lambda client: client.add_publication("aeron:ipc", 2**31), "stream_id", 2**31, ID),
    "exclusive": (
        lambda client: client.add_exclusive_publication("aeron:ipc", 2**31),
        "stream_id",
        2**31,
        ID,
    ),
    "subscription": (
        lambda client: client.add_subscription("aeron:ipc", -(2**31) - 1),
        "stream_id",
        -(2**31) - 1,
        ID,
    ),
    "session": (lambda client: client.next_available_session_id(2**40), "stream_id", 2**40, ID),
    "counter": (lambda client: client.add_counter(2**31, label="x"), "type_id", 2**31, ID),
}
COUNTER = {
    "value": (lambda counter: setattr(counter, "value", 2**63), "value", 2**63, LONG),
    "get_and_add": (lambda counter: counter.get_and_add(-(2**63) - 1), "delta", -(2**63) - 1, LONG),
    "set_reference_id": (lambda counter: counter.set_reference_id(2**63), "reference_id", 2**63, LONG),
}
CLAIM = {
    "flags": (
        lambda claim: setattr(claim, "flags", 256),
        "flags",
        256,
        "must be a whole number from 0 to 255",
    ),
    "reserved_value": (lambda claim: setattr(claim, "reserved_value", 2**63), "reserved_value", 2**63, LONG),
}

FRAMES = dict.fromkeys(("recording_id", "start_position", "initial_term_id", "stream_id"), 0) | dict.fromkeys(
    ("term_length", "segment_length"), 65_536
)
RANGE = dict.fromkeys(("start", "stop", "limit"), 0)
FILTER = ("session_id", "reserved_value_min", "reserved_value_max")
SHORT = ("initial_term_id", "term_length", "segment_length", "stream_id", "session_id")


def assert_refused(call, name, value, rule, subject):
    with pytest.raises(headrace.ConfigError) as refusal:
        call(subject)
    assert isinstance(refusal.value, ValueError)
    assert (refusal.value.setting, refusal.value.value, refusal.value.rule) == (name, str(value), rule)
    assert str(refusal.value) == f"{name}={value}: {rule}"


@pytest.mark.parametrize("case", SUBSCRIPTION)
def test_a_subscription_names_the_number(stream, case):
    assert_refused(*SUBSCRIPTION[case], stream[1])


@pytest.mark.parametrize("case", IMAGE)
def test_an_image_names_the_number(stream, case):
    assert_refused(*IMAGE[case], stream[1].images[0])


@pytest.mark.parametrize("case", PUBLICATION)
def test_a_publication_names_the_number(open_stream, case):
    publication, _ = open_stream(exclusive=True)
    assert_refused(*PUBLICATION[case], publication)
    assert publication.position == 0


@pytest.mark.parametrize("case", CLIENT)
def test_a_client_names_the_number(media_client, case):
    assert_refused(*CLIENT[case], media_client)


@pytest.mark.parametrize("case", COUNTER)
def test_a_counter_names_the_number(media_client, case):
    with media_client.add_counter(1001) as counter:
        assert_refused(*COUNTER[case], counter)
        assert counter.value == 0


@pytest.mark.parametrize("case", CLAIM)
def test_a_claim_names_the_number(stream, case):
    claim = stream[0].try_claim(8)
    assert_refused(*CLAIM[case], claim)
    claim.abort()


@pytest.mark.parametrize(
    ("make", "given", "name"),
    [
        *((headrace.RecordedFrames, FRAMES, name) for name in (*FRAMES, "session_id")),
        *((headrace.MessageFilter, {}, name) for name in FILTER),
    ],
)
def test_how_a_recording_is_described_names_the_number(make, given, name):
    rule = ID if name in SHORT else LONG
    assert_refused(lambda given: make(**given), name, 2**63, rule, given | {name: 2**63})


@pytest.mark.parametrize("name", RANGE)
def test_a_reader_of_recordings_names_the_number(tmp_path, name):
    frames, given = headrace.RecordedFrames(**FRAMES), RANGE | {name: 2**63}
    assert_refused(
        lambda source: headrace.RecordingReader(source, frames, **given), name, 2**63, LONG, tmp_path
    )


@pytest.mark.parametrize("name", ["count_max", "length_max"])
def test_a_batch_of_a_recording_names_the_number(tmp_path, name):
    reader = headrace.RecordingReader(tmp_path, headrace.RecordedFrames(**FRAMES), **RANGE)
    given = {"count_max": 1} | {name: -1}
    assert_refused(lambda reader: reader.read_batch(**given), name, -1, COUNT, reader)


def test_what_is_no_integer_stays_a_type_error(stream):
    publication, subscription = stream
    with pytest.raises(TypeError):
        subscription.poll(ignore, "ten")
    with pytest.raises(TypeError):
        publication.try_claim(1.5)


def test_a_number_too_long_to_print_is_refused_all_the_same(stream):
    with pytest.raises(headrace.ConfigError, match="limit="):
        stream[1].poll(ignore, 10**5000)


def test_positions_may_still_be_left_out(stream):
    image = stream[1].images[0]
    assert image.controlled_poll(ignore, limit_position=None) == 0


@pytest.mark.parametrize(
    ("block", "name", "value", "rule"),
    [
        (bytes(32), "block term_offset", "0", "the first frame must have term_offset=160"),
        (bytes(33), "len(block)", "33", "must be a positive multiple of 32 and at most remaining=65376"),
    ],
)
def test_a_block_says_once_what_is_wrong_with_it(open_stream, block, name, value, rule):
    publication, _ = open_stream(exclusive=True)
    assert publication.append_padding(100) == 160
    with pytest.raises(headrace.ConfigError) as refusal:
        publication.offer_block(block)
    assert (refusal.value.setting, refusal.value.value) == (name, value)
    assert str(refusal.value).startswith(f"{name}={value}: {rule}")
    assert "refused" not in str(refusal.value)
