"""Keyword arguments of `Client.connect` that are not settings: they have neither text nor a property name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypedDict, cast

from headrace._core import Image
from headrace._settings.keywords import ClientSettings

if TYPE_CHECKING:
    from headrace._base.exceptions import HeadraceError, RegistrationError
    from headrace.clock import Clock

__all__ = ["KEYWORDS", "ClientKeywords", "ClientOptions", "CounterHandler", "ImageHandler", "options_of"]

ImageHandler = Callable[[Image], object]
CounterHandler = Callable[[int, int], object]


class ClientOptions(TypedDict, total=False):
    """How a client runs, and its handlers; see :meth:`headrace.Client.connect`."""

    use_invoker: bool
    clock: Clock | None
    on_error: Callable[[HeadraceError], object] | None
    on_close: Callable[[], object] | None
    on_available_image: ImageHandler | None
    on_unavailable_image: ImageHandler | None
    on_available_counter: CounterHandler | None
    on_unavailable_counter: CounterHandler | None
    on_publication_error: Callable[[RegistrationError], object] | None


class ClientKeywords(ClientSettings, ClientOptions, total=False):
    """All keyword arguments of :meth:`headrace.Client.connect` except directory, driver and config."""


# Further keywords to suggest for a misspelt one.
KEYWORDS = (*ClientOptions.__annotations__, "config", "driver", "reconnect", "on_disconnect", "on_reconnect")


def options_of(keywords: Mapping[str, object]) -> ClientOptions:
    """The keywords that are not settings."""
    names = ClientOptions.__annotations__
    return cast("ClientOptions", {name: value for name, value in keywords.items() if name in names})
