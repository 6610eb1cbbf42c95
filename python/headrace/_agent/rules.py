"""Rules for the settings that archives and the parts of a cluster have in common."""

from __future__ import annotations

from headrace._settings.rules import Rule, accepts
from headrace.client import IdleStrategy
from headrace.security.plugins import is_authenticator, is_authorisation

__all__ = ["AUTHENTICATOR", "AUTHORISATION", "IDLE_STRATEGY"]

IDLE_STRATEGY = Rule(
    "backoff, yield, spin, noop, sleep-ns or sleep-ms, or a class of Aeron",
    lambda value: isinstance(value, str) and accepts(IdleStrategy, value),
)
AUTHENTICATOR = Rule(
    "users-file:PATH for a file of `headrace archive users`, or package.module:Name of a class with the method of "
    "headrace.security.Authenticator, which is not async; in Python also an object with it",
    is_authenticator,
)
AUTHORISATION = Rule(
    "ALLOW_ALL, DENY_ALL, or package.module:Name of a class with the method of "
    "headrace.security.AuthorisationService, which is not async; in Python also an object with it",
    is_authorisation,
)
