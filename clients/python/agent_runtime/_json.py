"""JSON values whose type is not known yet."""

from __future__ import annotations

from typing import Any, cast


def json_object(value: Any) -> dict[str, Any] | None:
    """The value, if it is an object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def json_list(value: Any) -> list[Any] | None:
    """The value, if it is a list."""
    return [*cast("tuple[Any, ...]", value)] if isinstance(value, list) else None
