"""Keyword arguments of `Client.connect` that are no settings: they have no text, and no property name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypedDict, cast

from headrace._settings import ClientSettings

if TYPE_CHECKING:
    from headrace._core import Image
    from headrace._exceptions import HeadraceError, RegistrationError
    from headrace.clock import Clock

__all__ = ["KEYWORDS", "ClientKeywords", "ClientOptions", "CounterHandler", "ImageHandler", "options_of"]

ImageHandler = Callable[["Image"], object]
CounterHandler = Callable[[int, int], object]


class ClientOptions(TypedDict, total=False):
    """How a client runs, and whom it tells; see :meth:`headrace.Client.connect`."""

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
    """All keyword arguments of :meth:`headrace.Client.connect` but those that say where."""


# What else a misspelt keyword may have been meant for.
KEYWORDS = (*ClientOptions.__annotations__, "config", "driver", "reconnect", "on_disconnect", "on_reconnect")


def options_of(keywords: Mapping[str, object]) -> ClientOptions:
    """Those of the keywords that are no settings."""
    names = ClientOptions.__annotations__
    return cast("ClientOptions", {name: value for name, value in keywords.items() if name in names})
