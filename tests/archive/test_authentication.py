"""Who may talk to an archive, and what it may ask: each way to get it wrong, and that no secret shows anywhere."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import headrace
from headrace.archive import Archive, ErrorCode
from headrace.archive.aio import AsyncArchive
from headrace.archive.protocol.answers import Answer, Challenge, ControlResponse
from headrace.archive.protocol.codes import Response
from headrace.archive.protocol.messages import PROTOCOL_VERSION, Message, decode, encode
from headrace.archive.protocol.requests import (
    ArchiveIdRequest,
    AuthConnectRequest,
    ChallengeResponse,
    KeepAliveRequest,
    StartRecordingRequest,
)
from headrace.archive.server import control
from headrace.cnc.error_log import read_error_log
from headrace.security import Accepted, Rejected, UserCredentials, UsersFile, Verdict
from headrace.security import Challenge as Ask
from tests.archive.test_requests import ANSWERED, TEMPLATES, request_of
from tests.helpers import TIMEOUT_S, await_true

pytestmark = pytest.mark.system

SECRET = "M4RK3D-secret"
RIGHT = f"alice:{SECRET}".encode()
QUESTION, ANSWER = b"who is there? M4RK3D-secret", b"it is me, M4RK3D-secret"
CHANNEL = "aeron:ipc?term-length=64k"


class Gate:
    """Accepts one name and secret, and asks those who say so for a proof; does what others say."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.seen: list[bytes] = []

    def on_connect(self, credentials: bytes) -> Verdict:
        self.seen.append(credentials)
        if credentials == b"block":
            self.may_go_on.wait(TIMEOUT_S)
        if credentials == b"raise":
            raise RuntimeError(f"nobody may see {SECRET}")
        if credentials == b"ask":
            return Ask(QUESTION, self._on_answer)
        if credentials == b"ask twice":
            return Ask(QUESTION, lambda _: Ask(QUESTION, self._on_answer))
        return Accepted(b"alice") if credentials == RIGHT else Rejected()

    @staticmethod
    def _on_answer(answer: bytes) -> Verdict:
        if answer == b"raise":
            raise RuntimeError(f"nobody may see {SECRET}")
        return Accepted(b"asked") if answer == ANSWER else Rejected()


class Proof:
    """A supplier that answers challenges."""

    def __init__(self, credentials: bytes = b"ask", answer: object = ANSWER) -> None:
        self.challenges: list[bytes] = []
        self._credentials = credentials
        self._answer = answer

    def encoded_credentials(self) -> bytes:
        return self._credentials

    def on_challenge(self, challenge: bytes) -> bytes:
        self.challenges.append(challenge)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer  # type: ignore[return-value]


@pytest.fixture
def gate() -> Iterator[Gate]:
    """What decides; whatever it holds up goes on at the end."""
    gate = Gate()
    yield gate
    gate.may_go_on.set()


@contextmanager
def archive_of(directory: Path, **settings: object) -> Iterator[headrace.ArchivingMediaDriver]:
    """An archive that no client may make fail."""
    with headrace.ArchivingMediaDriver.embedded(archive_directory=directory, **settings) as archiving:  # type: ignore[arg-type]
        yield archiving
        assert archiving.archive.failure is None


@pytest.fixture
def archiving(tmp_path: Path, gate: Gate) -> Iterator[headrace.ArchivingMediaDriver]:
    """An archive behind the gate."""
    with archive_of(tmp_path / "archive", authenticator=gate) as archiving:
        yield archiving


def warnings_of(directory: Path) -> dict[str, int]:
    """What the error log in a mark file says, and how often."""
    data = (directory / "archive-mark.dat").read_bytes()
    return {entry.text: entry.observation_count for entry in read_error_log(data[8192:])}


class Raw:
    """A client that sends what it likes."""

    def __init__(self, client: headrace.Client, stream_id: int = 2020) -> None:
        self._subscription = client.add_subscription("aeron:ipc", stream_id)
        self.publication = client.add_exclusive_publication("aeron:ipc", 10)
        self._stream_id = stream_id
        self.heard: list[Answer] = []
        assert self.publication.wait_until_connected(TIMEOUT_S)

    def connect(self, credentials: bytes, correlation_id: int = 1) -> None:
        self.send(
            AuthConnectRequest(
                correlation_id=correlation_id,
                response_stream_id=self._stream_id,
                response_channel="aeron:ipc",
                version=PROTOCOL_VERSION,
                encoded_credentials=credentials,
            )
        )

    def send(self, message: Message) -> None:
        self.publication.offer_blocking(encode(message), timeout_s=TIMEOUT_S)

    def answer_to(self, correlation_id: int, kind: type[Answer] = ControlResponse) -> Answer:  # type: ignore[assignment]
        """The first answer to a request that is of a kind."""
        found: list[Answer] = []

        def look() -> bool:
            while (received := self._subscription.poll_message()) is not None:
                self.heard.append(decode(received.payload))  # type: ignore[arg-type]
            found[:] = [
                one for one in self.heard if isinstance(one, kind) and one.correlation_id == correlation_id
            ]
            return bool(found)

        await_true(look)
        return found[0]


def refused(archiving: headrace.ArchivingMediaDriver, credentials: object) -> headrace.AuthenticationError:
    """How a client is told that it is not served."""
    with pytest.raises(headrace.AuthenticationError) as refusal:
        archiving.connect_archive(credentials=credentials)  # type: ignore[arg-type]
    assert SECRET not in str(refusal.value)
    return refusal.value


# --- connecting ----------------------------------------------------------------------------------------------------


def test_a_client_with_the_right_credentials_is_served(archiving: headrace.ArchivingMediaDriver) -> None:
    for credentials in (RIGHT, UserCredentials("alice", SECRET)):
        with archiving.connect_archive(credentials=credentials) as archive:
            assert archive.list_recordings() == []


@pytest.mark.parametrize(
    "credentials", [b"alice", RIGHT[:-1], RIGHT + b"x", b"\xff\xfe\x00", b"x" * 7000, b"raise"]
)
def test_a_client_with_wrong_credentials_is_told_so(
    archiving: headrace.ArchivingMediaDriver, credentials: bytes
) -> None:
    """And leaves no session."""
    refusal = refused(archiving, credentials)
    assert refusal.code == ErrorCode.AUTHENTICATION_REJECTED
    assert "authentication rejected (AUTHENTICATION_REJECTED): the archive does not accept" in str(refusal)
    with archiving.connect_archive(credentials=RIGHT) as archive:
        assert archive.list_recordings() == []
    await_true(lambda: not archiving.archive._control._sessions)
    assert warnings_of(Path(archiving.archive.directory))["WARN - a client was refused"] == 1


def test_a_client_without_credentials_is_told_to_give_some(archiving: headrace.ArchivingMediaDriver) -> None:
    refusal = refused(archiving, b"")
    assert "give credentials=" in str(refusal)


def test_credentials_that_no_one_would_keep_are_rejected_unread(
    archiving: headrace.ArchivingMediaDriver, gate: Gate
) -> None:
    """The authenticator does not see them."""
    with archiving.connect() as client:
        raw = Raw(client)
        raw.publication.close()
        raw.publication = client.add_exclusive_publication("aeron:ipc?term-length=1m", 10)
        assert raw.publication.wait_until_connected(TIMEOUT_S)
        raw.connect(b"x" * 64 * 1024)
        raw.answer_to(1)
        assert [len(one) for one in gate.seen] == [64 * 1024]
        raw.connect(b"x" * (64 * 1024 + 1), 2)
        answer = raw.answer_to(2)
        assert isinstance(answer, ControlResponse)
        assert answer.relevant_id == ErrorCode.AUTHENTICATION_REJECTED
        assert len(gate.seen) == 1


def test_an_authenticator_that_raises_is_noted_without_what_it_saw(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    """As a failure of the archive, for its operator; the client is only rejected."""
    refused(archiving, b"raise")
    refused(archiving, Proof(answer=b"raise"))
    texts = warnings_of(Path(archiving.archive.directory))
    failures = [text for text in texts if "RuntimeError at test_authentication.py:" in text]
    assert len(failures) == 2
    assert archiving.archive.error_count == 2


def test_credentials_are_passed_over_where_no_one_asks_for_them(tmp_path: Path) -> None:
    with (
        archive_of(tmp_path / "archive") as archiving,
        archiving.connect_archive(credentials=RIGHT) as archive,
    ):
        assert archive.list_recordings() == []


# --- challenges ----------------------------------------------------------------------------------------------------


def test_a_challenge_is_answered_once_or_as_often_as_it_is_sent(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    for credentials, count in ((b"ask", 1), (b"ask twice", 2)):
        proof = Proof(credentials)
        with archiving.connect_archive(credentials=proof) as archive:
            assert proof.challenges == [QUESTION] * count
            assert archive.list_recordings() == []


@pytest.mark.parametrize("answer", [b"", b"wrong", ANSWER + b"x", b"\xff", b"raise"])
def test_a_wrong_answer_to_a_challenge_is_rejected(
    archiving: headrace.ArchivingMediaDriver, answer: bytes
) -> None:
    assert refused(archiving, Proof(answer=answer)).code == ErrorCode.AUTHENTICATION_REJECTED


@pytest.mark.parametrize(
    ("answer", "words"),
    [(ValueError(SECRET), "ValueError at"), (SECRET, "must return bytes"), (None, "NoneType")],
)
def test_a_supplier_that_fails_is_an_error_of_its_client(
    archiving: headrace.ArchivingMediaDriver, answer: object, words: str
) -> None:
    assert words in str(refused(archiving, Proof(answer=answer)))


def test_credentials_that_cannot_answer_say_what_can(archiving: headrace.ArchivingMediaDriver) -> None:
    assert "on_challenge(challenge)" in str(refused(archiving, b"ask"))


def test_a_challenge_that_is_not_answered_ends_with_the_connect_time_out(tmp_path: Path, gate: Gate) -> None:
    with (
        archive_of(tmp_path / "archive", authenticator=gate, connect_timeout_ns=300_000_000) as archiving,
        archiving.connect() as client,
    ):
        raw = Raw(client)
        raw.connect(b"ask")
        challenge = raw.answer_to(1, Challenge)
        await_true(lambda: not archiving.archive._control._sessions)
        raw = Raw(client, 2021)
        raw.send(
            ChallengeResponse(
                control_session_id=challenge.control_session_id, correlation_id=2, encoded_credentials=ANSWER
            )
        )
        raw.connect(RIGHT, 3)
        assert raw.answer_to(3)
        assert [one for one in raw.heard if one.correlation_id == 2] == []


def test_an_answer_counts_once_and_only_for_the_client_that_was_asked(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    """Not of another client, not before the question, not a second time."""
    with archiving.connect() as client:
        asked, other = Raw(client, 2021), Raw(client, 2022)
        asked.connect(b"ask")
        challenge = asked.answer_to(1, Challenge)
        other.connect(RIGHT)
        opened = other.answer_to(1)

        def proof(control_session_id: int, correlation_id: int, answer: bytes) -> ChallengeResponse:
            return ChallengeResponse(
                control_session_id=control_session_id,
                correlation_id=correlation_id,
                encoded_credentials=answer,
            )

        other.send(proof(challenge.control_session_id, 7, ANSWER))
        other.send(proof(opened.control_session_id, 8, ANSWER))
        other.send(proof(-1, 9, ANSWER))
        asked.send(proof(challenge.control_session_id, 2, ANSWER))
        answer = asked.answer_to(2)
        assert isinstance(answer, ControlResponse)
        assert answer.code is Response.OK
        asked.send(proof(challenge.control_session_id, 3, b"wrong"))
        asked.send(ArchiveIdRequest(control_session_id=challenge.control_session_id, correlation_id=4))
        assert asked.answer_to(4)
        ids = {one.correlation_id for one in (*asked.heard, *other.heard)}
        assert ids.isdisjoint({3, 7, 8, 9})
    texts = warnings_of(Path(archiving.archive.directory))
    assert texts["WARN - a client answered a challenge that it was not sent"] == 2
    assert texts["WARN - ChallengeResponse names a control session that this client does not have"] == 2


def test_a_request_before_its_client_is_authenticated_does_nothing(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    """Nor one of a client that was rejected. A keep-alive is a request like any other."""
    with archiving.connect() as client:
        raw = Raw(client)
        raw.connect(b"ask")
        challenged = raw.answer_to(1, Challenge).control_session_id
        raw.connect(b"wrong", 2)
        rejected = raw.answer_to(2).control_session_id
        for session_id in (challenged, rejected):
            ids = {"control_session_id": session_id, "correlation_id": 77}
            raw.send(KeepAliveRequest(**ids))
            raw.send(StartRecordingRequest(**ids, stream_id=1001, source_location=0, channel=CHANNEL))  # type: ignore[arg-type]
        raw.send(
            ChallengeResponse(control_session_id=challenged, correlation_id=3, encoded_credentials=ANSWER)
        )
        raw.answer_to(3)
        assert [one for one in raw.heard if one.correlation_id == 77] == []
        assert archiving.archive._recordings.subscriptions() == []
        assert archiving.archive.error_count == 0
    texts = warnings_of(Path(archiving.archive.directory))
    assert texts["WARN - StartRecordingRequest came before its client was authenticated"] == 2
    assert texts["WARN - KeepAliveRequest came before its client was authenticated"] == 2


# --- holding the archive up ----------------------------------------------------------------------------------------


def test_an_authenticator_that_blocks_holds_up_no_client_that_is_connected(
    archiving: headrace.ArchivingMediaDriver, gate: Gate
) -> None:
    with archiving.connect_archive(credentials=RIGHT) as archive, archiving.connect() as client:
        raw = Raw(client)
        raw.connect(b"block")
        await_true(lambda: b"block" in gate.seen)
        with archive.add_recorded_publication(CHANNEL, 1001) as publication:
            publication.offer_blocking(b"recorded meanwhile")
            recording_id = archive.list_recordings()[0].recording_id
            await_true(lambda: archive.recording_position(recording_id) == publication.position)


def test_half_open_sessions_are_as_many_as_there_may_be_and_leave_after_a_while(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are open go on; others come in when places are free again."""
    monkeypatch.setattr(control, "_UNAUTHENTICATED_MAX", 5)
    with (
        archive_of(tmp_path / "archive", authenticator=gate, connect_timeout_ns=2_000_000_000) as archiving,
        archiving.connect_archive(credentials=RIGHT) as archive,
        archiving.connect() as client,
    ):
        raw = Raw(client)
        for number in range(20):
            raw.connect(b"ask", number)
        warning = "WARN - a client cannot connect: max control sessions that are not authenticated reached 5"
        await_true(lambda: warnings_of(tmp_path / "archive").get(warning) == 15)
        assert len(archiving.archive._control._sessions) == 6
        assert archive.list_recordings() == []
        await_true(lambda: len(archiving.archive._control._sessions) == 1)
        with archiving.connect_archive(credentials=RIGHT):
            assert archive.list_recordings() == []


def test_clients_at_once_are_each_told_their_own_verdict(archiving: headrace.ArchivingMediaDriver) -> None:
    def attempt(number: int) -> str:
        credentials = [RIGHT, b"wrong", Proof(), Proof(answer=b"wrong")][number % 4]
        try:
            with archiving.connect_archive(credentials=credentials) as archive:  # type: ignore[arg-type]
                return str(archive.list_recordings())
        except headrace.AuthenticationError:
            return "rejected"

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(attempt, range(24))) == ["[]", "rejected", "[]", "rejected"] * 6


def test_an_archive_ends_while_its_authenticator_blocks(tmp_path: Path, gate: Gate) -> None:
    with archive_of(tmp_path / "archive", authenticator=gate) as archiving, archiving.connect() as client:
        raw = Raw(client)
        raw.connect(b"block")
        await_true(lambda: b"block" in gate.seen)


# --- authorisation -------------------------------------------------------------------------------------------------


class Only:
    """Allows what connecting takes, and some more; keeps what it was asked."""

    def __init__(self, *action_ids: int) -> None:
        self.action_ids = {61, 68, *action_ids}
        self.asked: list[tuple[int, int, int | None, bytes]] = []

    def is_authorised(
        self, protocol_id: int, action_id: int, action_type: int | None, principal: bytes
    ) -> bool:
        self.asked.append((protocol_id, action_id, action_type, principal))
        return action_id in self.action_ids


def files_of(directory: Path) -> dict[str, bytes]:
    """What an archive keeps, but for what tells of its life."""
    return {
        path.name: path.read_bytes() for path in directory.glob("*") if path.suffix in (".rec", ".catalog")
    }


def test_each_request_that_is_not_authorised_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """With the code and a text that names it; and each is a warning."""
    directory = tmp_path / "archive"
    with archive_of(directory) as archiving, archiving.connect_archive() as archive:
        for _ in range(2):
            with archive.add_recorded_publication(CHANNEL, 1001) as publication:
                publication.offer_blocking(b"kept")
        await_true(lambda: all(one.stop_position >= 0 for one in archive.list_recordings()))
    before = files_of(directory)
    service = Only()
    with (
        archive_of(directory, authenticator=Gate(), authorisation=service) as archiving,
        archiving.connect() as client,
    ):
        raw = Raw(client)
        raw.connect(RIGHT)
        session_id = raw.answer_to(1).control_session_id
        names = [name for name in ANSWERED if name != "ArchiveIdRequest"]
        assert len(names) > 30
        for number, name in enumerate(names, 100):
            request = request_of(name, controlSessionId=session_id, correlationId=number)
            raw.publication.offer_blocking(request, timeout_s=TIMEOUT_S)
            answer = raw.answer_to(number)
            assert isinstance(answer, ControlResponse)
            assert (answer.code, answer.relevant_id) == (Response.ERROR, ErrorCode.UNAUTHORISED_ACTION), name
            assert name in answer.error_message
            assert service.asked[-1] == (101, TEMPLATES[name].template_id, None, b"alice")
        texts = warnings_of(directory)
        for name in names:
            assert texts[f"WARN - {name} refused: UNAUTHORISED_ACTION"] == 1
        assert archiving.archive.error_count == 0
    assert files_of(directory) == before


def test_what_is_authorised_is_carried_out(tmp_path: Path) -> None:
    """For a replay the request itself; over a connection of its own as well."""
    directory = tmp_path / "archive"
    with archive_of(directory) as archiving, archiving.connect_archive() as archive:
        with archive.add_recorded_publication(CHANNEL, 1001) as publication:
            publication.offer_blocking(b"kept")
        await_true(lambda: archive.list_recordings()[0].stop_position > 0)
    service = Only(6, 7, 8, 10, 15, 52, 67, 105)
    with archive_of(directory, authorisation=service) as archiving:
        for response_channel in ("aeron:ipc", "aeron:ipc?control-mode=response"):
            with archiving.connect_archive(response_channel=response_channel) as archive:
                with archive.replay(0, channel=response_channel) as replay:
                    assert [one.payload for one in replay] == [b"kept"]
                service.action_ids.remove(6)
                with pytest.raises(headrace.ArchiveError, match="ReplayRequest") as refusal:
                    archive.replay(0, channel=response_channel)
                assert refusal.value.code == ErrorCode.UNAUTHORISED_ACTION
                service.action_ids.add(6)


@pytest.mark.parametrize("value", [RuntimeError(SECRET), None, "yes", 1])
def test_a_service_that_fails_denies(tmp_path: Path, value: object) -> None:
    class Fails(Only):
        def is_authorised(self, *asked: object) -> bool:
            if asked[1] in self.action_ids:
                return True
            if isinstance(value, Exception):
                raise value
            return value  # type: ignore[return-value]

    with (
        archive_of(tmp_path / "archive", authorisation=Fails()) as archiving,
        archiving.connect_archive() as archive,
    ):
        with pytest.raises(headrace.ArchiveError, match="not authorised"):
            archive.list_recordings()
        assert archiving.archive.error_count == 1
        assert not any(SECRET in text for text in warnings_of(tmp_path / "archive"))


def test_an_archive_that_denies_everything_opens_no_session(tmp_path: Path) -> None:
    with (
        archive_of(tmp_path / "archive", authorisation="DENY_ALL") as archiving,
        pytest.raises(headrace.ArchiveError, match="ArchiveIdRequest") as refusal,
    ):
        archiving.connect_archive()
    assert refusal.value.code == ErrorCode.UNAUTHORISED_ACTION


# --- each way to open a session ------------------------------------------------------------------------------------


def test_asyncio_sessions_answer_challenges_and_are_rejected(
    archiving: headrace.ArchivingMediaDriver,
) -> None:
    async def use() -> None:
        async with await AsyncArchive.connect(driver=archiving.driver, credentials=Proof()) as archive:
            assert await archive.list_recordings() == []
        with pytest.raises(headrace.AuthenticationError, match="rejected"):
            await AsyncArchive.connect(driver=archiving.driver, credentials=b"wrong")

    asyncio.run(use())


def test_a_follow_opens_its_sessions_as_the_archive_it_comes_from(
    archiving: headrace.ArchivingMediaDriver, gate: Gate
) -> None:
    """When it is rejected it fails at once, and says so."""
    words = [RIGHT, RIGHT, b"wrong"]

    class Changing(Proof):
        def encoded_credentials(self) -> bytes:
            return words.pop(0)

    with (
        archiving.connect_archive(credentials=Changing()) as archive,
        archive.add_recorded_publication(CHANNEL, 1001) as publication,
    ):
        publication.offer_blocking(b"one")
        recording_id = archive.list_recordings()[0].recording_id
        with archive.follow(recording_id) as follow:
            received = follow.receive(timeout_s=TIMEOUT_S)
            assert received is not None
            assert received.payload == b"one"
        with (
            archive.follow(recording_id) as follow,
            pytest.raises(headrace.AuthenticationError, match="rejected"),
        ):
            follow.receive(timeout_s=TIMEOUT_S)
    assert gate.seen == [RIGHT, RIGHT, b"wrong"]


def test_a_replication_shows_the_source_its_credentials(tmp_path: Path, gate: Gate) -> None:
    """Fixed ones: nothing answers a challenge. A rejection is the reason that the replication gives."""
    with (
        headrace.MediaDriver.embedded(threading_mode="SHARED") as driver,
        headrace.ArchiveServer(
            driver=driver,
            archive_directory=tmp_path / "source",
            authenticator=gate,
            control_channel_enabled=False,
        ),
        headrace.ArchiveServer(
            driver=driver,
            archive_directory=tmp_path / "copy",
            control_channel_enabled=False,
            local_control_stream_id=110,
            replication_channel="aeron:udp?endpoint=127.0.0.1:0",
        ),
        Archive.connect(driver=driver, credentials=RIGHT) as source,
        Archive.connect(driver=driver, control_stream_id=110, response_stream_id=120) as copy,
    ):
        with source.add_recorded_publication(CHANNEL, 1001) as publication:
            publication.offer_blocking(b"one")
        await_true(lambda: source.list_recordings()[0].stop_position > 0)
        for credentials in (b"", b"wrong", b"ask"):
            with pytest.raises(headrace.ArchiveError, match="Replication connection failed") as refusal:
                copy.replicate(0, "aeron:ipc", credentials=credentials).wait(TIMEOUT_S)
            assert refusal.value.code == ErrorCode.REPLICATION_CONNECTION_FAILURE
            assert copy.list_recordings() == []
        copy.replicate(0, "aeron:ipc", credentials=RIGHT).wait(TIMEOUT_S)
        with copy.replay(0) as replay:
            assert [one.payload for one in replay] == [b"one"]


# --- secrets -------------------------------------------------------------------------------------------------------


def test_no_secret_is_in_a_file_a_counter_or_a_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of clients that were accepted, challenged, rejected, and that sent nonsense. The streams themselves have it."""
    caplog.set_level(logging.DEBUG)
    users = UsersFile(tmp_path / "users")
    users.put("alice", SECRET)
    directory = tmp_path / "archive"
    told: list[str] = []
    marked = SECRET.encode()

    def connect(archiving: headrace.ArchivingMediaDriver, credentials: object) -> None:
        try:
            with archiving.connect_archive(credentials=credentials) as archive:  # type: ignore[arg-type]
                told.append(repr(archive) + repr(archive._config))
        except headrace.HeadraceError as failure:
            told.append(f"{failure!r} {failure}")

    tries: dict[object, list[Callable[[], object]]] = {
        f"users-file:{users.path}": [lambda: RIGHT, lambda: b"bob:" + marked, lambda: marked, lambda: SECRET],
        Gate(): [Proof, lambda: Proof(answer=marked), lambda: b"raise", lambda: Proof(answer=b"raise")],
    }
    for authenticator, suppliers in tries.items():
        with archive_of(directory, authenticator=authenticator) as archiving:
            for supply in suppliers:
                connect(archiving, supply())
            with archiving.connect() as client:
                raw = Raw(client)
                whole = encode(
                    AuthConnectRequest(
                        correlation_id=1,
                        response_stream_id=1,
                        response_channel=SECRET,
                        encoded_credentials=marked,
                    )
                )
                for data in (
                    whole[:-7],
                    whole[:40] + marked,
                    encode(ChallengeResponse(encoded_credentials=marked)),
                ):
                    raw.publication.offer_blocking(data, timeout_s=TIMEOUT_S)
                raw.connect(RIGHT)
                raw.answer_to(1)
            aeron = [path for path in Path(archiving.directory).rglob("*") if path.is_file()]
            found = [path for path in aeron if path.suffix != ".logbuffer" and marked in path.read_bytes()]
            assert aeron
            assert found == []
            told.append(repr(archiving) + repr(archiving.archive) + repr(archiving.archive.config))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"archive-mark.dat", "archive.catalog", "users"} <= {path.name for path in files}
    assert [path for path in files if marked in path.read_bytes()] == []
    assert not any(SECRET in text for text in told)
    assert SECRET not in caplog.text.replace(f"response_channel={SECRET}", "")
    captured = capfd.readouterr()
    assert SECRET not in captured.out + captured.err
