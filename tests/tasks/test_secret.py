"""The key says what it makes of a text, and nothing else, to nobody."""

from __future__ import annotations

import copy
import hashlib
import hmac
import os
import pickle
import subprocess
import sys
from collections.abc import Callable

import pytest

from kbgate.tasks import secret as module
from kbgate.tasks.errors import InputError
from kbgate.tasks.secret import NAME, Secret, environment, secret, withheld

KEY = "correct horse battery staple"


def test_a_key_makes_what_hmac_makes_and_knows_its_own() -> None:
    made = Secret(KEY).authenticate("text")
    assert made == hmac.new(KEY.encode(), b"text", hashlib.sha256).hexdigest()
    assert Secret(KEY).made(made, "text")
    for key, authentication, text in ((KEY + "r", made, "text"), (KEY, made[:-1], "text"), (KEY, "", "text"), (KEY, made, "t")):
        assert not Secret(key).made(authentication, text)


def test_a_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    monkeypatch.setattr(module.hmac, "compare_digest", lambda one, other: bool(compared.append((one, other))))
    Secret(KEY).made("0" * 64, "text")
    assert len(compared) == 1


def test_a_key_is_not_told() -> None:
    key = Secret(KEY)
    assert KEY not in f"{key!r} {key} {key!s} {vars(type(key))}"
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="leaves this process by no way"):
            leave(key)


def test_bytes_that_are_no_text_are_a_key_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environb, NAME.encode(), b"\xff\xfe")
    key = secret()
    assert key is not None
    assert key.authenticate("x") == hmac.new(b"\xff\xfe", b"x", hashlib.sha256).hexdigest()


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_a_blank_key_is_an_error_and_not_no_key(
    blank: str, monkeypatch: pytest.MonkeyPatch, kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(NAME, blank)
    for ask in (secret, lambda: Secret(blank), withheld().__enter__):
        with pytest.raises(InputError, match="KBGATE_KEY: is set and blank, which is no key"):
            ask()
    for command in (("evaluate", "nowhere"), ("gate", "nowhere", "--verdict", "x", "--index-fingerprint", "y"), ("checks",)):
        assert kbgate(*command) == 2
        assert "unset KBGATE_KEY" in capsys.readouterr().err


def test_without_a_key_there_is_none() -> None:
    assert secret() is None
    with withheld():
        assert secret() is None


def test_while_a_command_runs_its_environment_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, KEY)
    code = f"import os; print({NAME!r} in os.environ)"
    with withheld():
        assert NAME not in os.environ
        key = secret()
        assert key is not None
        assert key.made(hmac.new(KEY.encode(), b"x", hashlib.sha256).hexdigest(), "x")
        with withheld():
            assert secret() is key
        assert secret() is key
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
    assert os.environ[NAME] == KEY
    assert NAME not in environment()
    monkeypatch.delenv(NAME)
    assert secret() is None, "what was held is forgotten"


def test_the_key_is_back_whatever_a_command_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, KEY)
    with pytest.raises(ValueError, match="x"), withheld():
        raise ValueError("x")
    assert os.environ[NAME] == KEY
