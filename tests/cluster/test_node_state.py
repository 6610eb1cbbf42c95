"""The node-state file: what a member that voted knows after a kill."""

from pathlib import Path

import pytest

from headrace._agent.storage import DirectoryStorage
from headrace.cluster.errors import ClusterFileError
from headrace.cluster.files.node_state import NODE_STATE_NAME, CandidateTerm, NodeStateFile

VOTE = CandidateTerm(7, 1_700_000_000_000, 4096)


def test_a_new_member_never_voted(tmp_path: Path) -> None:
    storage = DirectoryStorage(tmp_path)
    with NodeStateFile(storage) as state:
        assert state.candidate_term == CandidateTerm(-1, -1, -1)
        state.vote(VOTE)
    with NodeStateFile(storage, read_only=True) as state:
        assert state.candidate_term == VOTE
    assert (tmp_path / NODE_STATE_NAME).stat().st_size == 1 << 20


def test_a_new_file_goes_on_from_what_an_older_member_voted(tmp_path: Path) -> None:
    """Also after a kill while it was made, before it had its version."""
    storage = DirectoryStorage(tmp_path)
    NodeStateFile(storage, candidate_term_id=5).close()
    path = tmp_path / NODE_STATE_NAME
    path.write_bytes(bytes(8) + path.read_bytes()[8:])
    with NodeStateFile(storage, candidate_term_id=5) as state:
        assert state.candidate_term == CandidateTerm(5, -1, -1)
        state.vote(VOTE)
    with NodeStateFile(storage, candidate_term_id=5) as state:
        assert state.candidate_term == VOTE


def test_a_member_votes_once_a_term(tmp_path: Path) -> None:
    with NodeStateFile(DirectoryStorage(tmp_path)) as state:
        state.vote(VOTE)
        for term_id in (7, 6, -1):
            with pytest.raises(ClusterFileError, match=f"candidate_term_id={term_id} is not above 7"):
                state.vote(CandidateTerm(term_id))
        assert state.candidate_term == VOTE


def test_an_entry_of_an_older_member_may_stand_between(tmp_path: Path) -> None:
    """Legacy: cluster members, 303, of a length that is no multiple of 8."""
    storage = DirectoryStorage(tmp_path)
    NodeStateFile(storage).close()
    path = tmp_path / NODE_STATE_NAME
    data = path.read_bytes()
    legacy = b"\x10\0\x2f\x01\x70\0\x0a\0" + (16 + 16 + 4 + 5).to_bytes(4, "little") + bytes(4)
    legacy = (legacy + bytes(16) + b"\5\0\0\0abcde").ljust(48, b"\0")
    path.write_bytes(data[:48] + legacy + data[48:-48])
    with NodeStateFile(storage) as state:
        state.vote(VOTE)
    with NodeStateFile(storage, read_only=True) as state:
        assert state.candidate_term == VOTE


@pytest.mark.parametrize(
    ("offset", "data", "said"),
    [
        (0, bytes(4), "version=0"),
        (0, b"\0\0\1\0", "version=65536"),
        (12, b"\x6f\0", "no whole entry of the candidate term and footer before offset=8"),
        (16, b"\xff\xff\xff\x7f", "no whole entry"),
        (16, bytes(4), "no whole entry"),
        (50, bytes(2), "no whole entry"),
        (10, b"\0\0", "no whole entry"),
    ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, offset: int, data: bytes, said: str) -> None:
    storage = DirectoryStorage(tmp_path)
    with NodeStateFile(storage) as state:
        state.vote(VOTE)
    path = tmp_path / NODE_STATE_NAME
    whole = bytearray(path.read_bytes())
    whole[offset : offset + len(data)] = data
    path.write_bytes(whole)
    for read_only in (True, False):
        with pytest.raises(ClusterFileError, match=said):
            NodeStateFile(storage, read_only=read_only)
    assert path.read_bytes() == whole


def test_a_file_that_no_member_writes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / NODE_STATE_NAME).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ClusterFileError, match=f"length={1 << 40} is above 67108864"):
        NodeStateFile(DirectoryStorage(tmp_path), read_only=True)
