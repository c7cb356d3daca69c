"""The list of settings is the models': every key once, with default, meaning and what is allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kbgate.tasks.settings import Gate, Suite
from kbgate.tasks.settings.listing import Key, keys_of_suite


def keys() -> dict[str, Key]:
    return {key.path: key for key in keys_of_suite()}


def test_every_key_says_what_it_means() -> None:
    listed = list(keys_of_suite())
    assert len({key.path for key in listed}) == len(listed)
    assert [key.path for key in listed if not key.meaning or not key.allowed or not key.default] == []


def test_every_section_and_every_limit_of_a_gate_is_there() -> None:
    paths = {path.replace("[", "").replace("]", "").split(".")[0] for path in keys()}
    written = {field.alias or name for name, field in Suite.model_fields.items()} - {"folder", "given", "floors"}
    assert paths == written
    assert {path.rpartition(".")[2] for path in keys() if path.startswith("gates.METRIC.")} == set(Gate.model_fields)


@pytest.mark.parametrize(
    ("path", "default", "allowed"),
    [
        ("name", "required", "text like ^[a-z0-9][a-z0-9-]{0,62}$"),
        ("top_k", "10", "whole number from 1 to 1000000"),
        ("pass_mark", "0.9", "number above 0 to 1"),
        ("kb.filterable", "[]", "list of text"),
        ("kb.types", "{}", "table of date | number | boolean | list"),
        ("index.ef_search", '"auto"', "whole number from 1 to 1000000 or auto"),
        ("gates.METRIC.rule", '"point"', "point | significant | noninferior"),
        ("[[allow]].until", "required", "date"),
        ("as_of", '"today"', "date or today"),
        ("retrieval.min_similarity", "-", "number"),
    ],
)
def test_what_is_said_of_a_key(path: str, default: str, allowed: str) -> None:
    assert (keys()[path].default, keys()[path].allowed) == (default, allowed)


def test_the_command_prints_them(kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert kbgate("settings") == 0
    shown = capsys.readouterr().out
    assert all(path in shown for path in keys())
