"""Plug-ins by the names that settings have for them."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from headrace._base.checks import excerpt
from headrace._base.exceptions import ConfigError
from headrace.security.authentication import Accepted, Authenticator, Verdict
from headrace.security.authorisation import AllowAll, AuthorisationService, DenyAll
from headrace.security.users import UsersAuthenticator, UsersFileError
from headrace.security.verdicts import described

__all__ = [
    "authenticator_named",
    "authorisation_named",
    "is_authenticator",
    "is_authorisation",
    "made_of_class",
]

USERS_FILE = "users-file:"
# The default of Aeron's programs, by its name there.
_ACCEPT_ALL = "io.aeron.security.DefaultAuthenticatorSupplier"
_SERVICES: dict[str, type[AuthorisationService]] = {"ALLOW_ALL": AllowAll, "DENY_ALL": DenyAll}
_CLASS_NAME = re.compile(r"\w+(?:\.\w+)*:\w+(?:\.\w+)*", re.ASCII)


class _AcceptAll:
    """Accepts every client, whose name is then empty."""

    def on_connect(self, credentials: bytes) -> Verdict:
        """See :class:`Authenticator`."""
        return Accepted()


def is_authenticator(value: object) -> bool:
    """Whether a setting may name an authenticator, or is one."""
    if isinstance(value, str):
        names_users = value.startswith(USERS_FILE) and value != USERS_FILE
        return names_users or value == _ACCEPT_ALL or _is_class(value)
    return _has_method(value, "on_connect")


def is_authorisation(value: object) -> bool:
    """Whether a setting may name an authorisation service, or is one."""
    if isinstance(value, str):
        return value in _SERVICES or _is_class(value)
    return _has_method(value, "is_authorised")


def _has_method(value: object, name: str) -> bool:
    """Whether an object has a method whose answer is there once it returns."""
    method = getattr(value, name, None)
    return callable(method) and not inspect.iscoroutinefunction(method)


def _is_class(name: str) -> bool:
    return _CLASS_NAME.fullmatch(name) is not None


def authenticator_named(setting: str, value: str | Authenticator) -> Authenticator:
    """The authenticator that a setting names or is.

    Raises:
        ConfigError: The file of users cannot be read, or there is no such class, or it cannot be made.
    """
    if not isinstance(value, str):
        return value
    if value == _ACCEPT_ALL:
        return _AcceptAll()
    if value.startswith(USERS_FILE):
        try:
            return UsersAuthenticator(value.removeprefix(USERS_FILE))
        except UsersFileError as failure:
            raise _wrong(setting, value, str(failure)) from failure
    made = made_of_class(setting, value)
    if not is_authenticator(made):
        raise _wrong(
            setting,
            value,
            "has no method on_connect, or an async one, see headrace.security.Authenticator",
        )
    authenticator: Authenticator = made
    return authenticator


def authorisation_named(setting: str, value: str | AuthorisationService) -> AuthorisationService:
    """The authorisation service that a setting names or is.

    Raises:
        ConfigError: There is no such class, or it cannot be made.
    """
    if not isinstance(value, str):
        return value
    if value in _SERVICES:
        return _SERVICES[value]()
    made = made_of_class(setting, value)
    if not is_authorisation(made):
        raise _wrong(
            setting,
            value,
            "has no method is_authorised, or an async one, see headrace.security.AuthorisationService",
        )
    service: AuthorisationService = made
    return service


def made_of_class(setting: str, value: str) -> Any:
    """An object of the class that `package.module:Name` names.

    Raises:
        ConfigError: The name has another form, there is no such class, or it cannot be made.
    """
    if not _is_class(value):
        raise _wrong(setting, value, "must name a class as package.module:Name")
    module, _, name = value.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as failure:
        raise _wrong(setting, value, f"cannot be imported: {failure}") from failure
    if not callable(found):
        rule = (
            f"must name a class, or a function that returns an object; this is a {type(found).__qualname__}"
        )
        raise _wrong(setting, value, rule)
    try:
        return found()
    except Exception as failure:
        # Its text may have a secret that the class was configured with.
        raise _wrong(setting, value, f"cannot be made without arguments: {described(failure)}") from failure


def _wrong(setting: str, value: str, rule: str) -> ConfigError:
    return ConfigError(f"{setting}={excerpt(value)}: {rule}", setting, value, rule)
