"""What a setting of an archive may be, besides what any setting may."""

from __future__ import annotations

from headrace._rules import Rule, accepts
from headrace.archive.files.checksum import checksum_named
from headrace.client import IdleStrategy
from headrace.security.named import is_authenticator, is_authorisation

__all__ = ["AUTHENTICATOR", "AUTHORISATION", "CHECKSUM", "IDLE_STRATEGY"]

IDLE_STRATEGY = Rule(
    "backoff, yield, spin, noop, sleep-ns or sleep-ms, or a class of Aeron",
    lambda value: isinstance(value, str) and accepts(IdleStrategy, value),
)
CHECKSUM = Rule(
    "CRC-32 or CRC-32C, or a class of Aeron with one of them",
    lambda value: isinstance(value, str) and accepts(checksum_named, value),
)
AUTHENTICATOR = Rule(
    "users-file:PATH for a file of `headrace archive users`, or package.module:Name of a class with the method of "
    "headrace.security.Authenticator; in Python also an object with it",
    is_authenticator,
)
AUTHORISATION = Rule(
    "ALLOW_ALL, DENY_ALL, or package.module:Name of a class with the method of "
    "headrace.security.AuthorisationService; in Python also an object with it",
    is_authorisation,
)
