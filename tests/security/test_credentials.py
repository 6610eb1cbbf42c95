"""What clients send, names of plug-ins in settings, and that neither shows a secret."""

from pathlib import Path

import pytest

import headrace
from headrace.archive import ArchiveClientConfig, ArchiveConfig
from headrace.security import FileCredentials, UserCredentials
from headrace.security.credentials import supplier_of
from headrace.security.plugins import authenticator_named, authorisation_named

SECRET = "M4RK3D-secret"


class Allows:
    """A plug-in of both kinds."""

    def on_connect(self, credentials: bytes) -> None:
        """Nothing."""

    def is_authorised(self, *_: object) -> bool:
        return True


class Raises(Allows):
    """One that cannot be made."""

    def __init__(self) -> None:
        raise ValueError(SECRET)


class Awaited:
    """One whose answers never come."""

    async def on_connect(self, credentials: bytes) -> None:
        """Nothing."""

    async def is_authorised(self, *_: object) -> bool:
        return True


class Other:
    """No plug-in."""


def test_a_name_and_a_secret_are_joined_by_a_colon() -> None:
    assert UserCredentials("alice", "a:b").encoded_credentials() == b"alice:a:b"
    for name in ("", "a:b"):
        with pytest.raises(headrace.ConfigError, match="name="):
            UserCredentials(name, SECRET)


def test_a_file_is_read_for_each_session(tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    credentials = FileCredentials(path)
    with pytest.raises(headrace.ConfigError, match="cannot be read"):
        credentials.encoded_credentials()
    path.write_text("")
    with pytest.raises(headrace.ConfigError, match="first line"):
        credentials.encoded_credentials()
    for line in ("alice:1", "alice:2"):
        path.write_text(f"{line}\nrest\n")
        assert credentials.encoded_credentials() == line.encode()
    assert repr(credentials) == f"FileCredentials({str(path)!r})"


def test_fixed_credentials_answer_no_challenge() -> None:
    for credentials in (b"x", UserCredentials("alice", SECRET)):
        with pytest.raises(headrace.AuthenticationError, match="on_challenge"):
            supplier_of(credentials).on_challenge(b"?")


def test_settings_do_not_show_credentials() -> None:
    """Neither right ones, nor wrong ones, nor those under a misspelt name."""
    config = ArchiveClientConfig(credentials=SECRET.encode())
    assert SECRET not in repr(config) + repr(supplier_of(SECRET.encode()))
    assert SECRET not in repr(UserCredentials("alice", SECRET))
    for wrong in ({"credentials": SECRET}, {"credential": SECRET.encode()}, {"credentials": [SECRET]}):
        with pytest.raises(headrace.ConfigError, match="not shown") as refusal:
            ArchiveClientConfig.of(None, **wrong)  # type: ignore[arg-type]
        assert SECRET not in str(refusal.value) + refusal.value.value


HERE = __name__


@pytest.mark.parametrize("named", [authenticator_named, authorisation_named])
def test_a_plug_in_is_found_by_its_name(named) -> None:  # type: ignore[no-untyped-def]
    assert isinstance(named("setting", f"{HERE}:Allows"), Allows)
    for name, words in (
        (f"{HERE}:Missing", "cannot be imported"),
        (f"{HERE}:HERE", "must name a class, or a function that returns an object; this is a str"),
        ("nowhere.to.be:Found", "cannot be imported"),
        (f"{HERE}:Other", "has no method"),
        (f"{HERE}:Awaited", "or an async one"),
        (f"{HERE}:Raises", "ValueError at test_credentials.py"),
    ):
        with pytest.raises(headrace.ConfigError, match="setting=") as refusal:
            named("setting", name)
        assert words in str(refusal.value)
        assert SECRET not in str(refusal.value)


@pytest.mark.parametrize("name", ["authenticator", "authorisation"])
def test_a_plug_in_whose_answers_never_come_is_refused_where_it_is_set(name: str) -> None:
    with pytest.raises(headrace.ConfigError, match=f"{name}=.*not async"):
        ArchiveConfig.of(environment={}, control_channel_enabled=False, **{name: Awaited()})


def test_settings_name_plug_ins_or_are_plug_ins() -> None:
    """By keyword, property and environment."""
    local = {"control_channel_enabled": False}
    for right in ("users-file:/etc/users", "a.b:C", Allows()):
        assert ArchiveConfig.of(environment={}, authenticator=right, **local).authenticator == right
    for right in ("ALLOW_ALL", "DENY_ALL", "a:B.C", Allows()):
        assert ArchiveConfig.of(environment={}, authorisation=right, **local).authorisation == right
    environment = {
        "AERON_ARCHIVE_AUTHENTICATOR_SUPPLIER": "a:B",
        "AERON_ARCHIVE_AUTHORISATION_SERVICE_SUPPLIER": "DENY_ALL",
    }
    config = ArchiveConfig.of(environment=environment, **local)
    assert (config.authenticator, config.authorisation) == ("a:B", "DENY_ALL")
    for wrong in (
        {"authenticator": "users-file:"},
        {"authenticator": "a.b"},
        {"authorisation": "ALLOW"},
        {"authorisation": 5},
    ):
        with pytest.raises(headrace.ConfigError, match=r"package\.module:Name"):
            ArchiveConfig.of(environment={}, **local, **wrong)


def test_an_archive_whose_users_cannot_be_read_does_not_start(tmp_path: Path) -> None:
    """And makes no file."""
    directory = tmp_path / "archive"
    with pytest.raises(headrace.ConfigError, match="cannot be read"):
        headrace.ArchivingMediaDriver.embedded(
            archive_directory=directory, authenticator=f"users-file:{tmp_path / 'users'}"
        )
    assert not directory.exists()
