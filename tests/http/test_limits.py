"""The limits of a server: from its settings and its descriptors."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from cortex_py.config import load_settings
from cortex_py.errors import ConfigurationError
from cortex_py.http.connections import Limits


def _limits(home: Path, descriptors: int, monkeypatch: pytest.MonkeyPatch, **settings: int) -> Limits:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
    return Limits.of(load_settings(home, environment={}, **settings))


@pytest.mark.parametrize("descriptors", [64, 256, 1_024, 1 << 20, resource.RLIM_INFINITY])
def test_half_of_the_descriptors_and_a_fifth_of_the_connections_stay_free(
    home: Path, descriptors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for settings in ({}, {"http_connections": 50_000, "http_requests": 50_000}):
        limits = _limits(home, descriptors, monkeypatch, **settings)
        if descriptors != resource.RLIM_INFINITY:
            assert limits.connections <= descriptors // 2
        assert limits.requests + limits.streams <= limits.connections * 4 // 5
        assert min(limits.requests, limits.streams) >= 1


@pytest.mark.parametrize("name", ["http_connections", "http_requests", "http_header_bytes", "http_idle_seconds"])
def test_no_limit_is_zero(home: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="1 or more"):
        load_settings(home, environment={f"CORTEX_{name.upper()}": "0"})
