"""Six ways to make the bundled knowledge base worse, each noticed and told; and the harmless changes, each let through."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import edit_lines, edit_text, last_report, last_verdict, read_lines, run_named, write_lines

CLI = Callable[..., int]


def drop_titles(suite: Path) -> None:
    edit_lines(suite / "cards.jsonl", lambda card: {**card, "title": ""})


def small_chunks(suite: Path) -> None:
    edit_text(suite / "suite.toml", "[gates]", "[chunking]\nsize = 64\noverlap = 16\n\n[gates]")


def cut_passages(suite: Path) -> None:
    edit_lines(suite / "cards.jsonl", lambda card: {**card, "text": card["text"][:100]})


def drop_every_20th(suite: Path) -> None:
    cards = read_lines(suite / "cards.jsonl")
    gold = {gold for case in read_lines(suite / "golden.jsonl") for gold in case.get("must_cite_one_of", [])}
    gold |= {gold for case in read_lines(suite / "golden.jsonl") for gold in case.get("expected", [])}
    removed = {card["id"] for card in cards[19::20]}
    spare = next(card["id"] for card in cards if card["id"] not in gold)
    # Gold among the removed is refused as a vanished label; the loss of a card that answers nothing is told too.
    write_lines(suite / "cards.jsonl", [card for card in cards if card["id"] not in removed | {spare}])


def untrained_model(suite: Path) -> None:
    edit_text(suite / "suite.toml", "[gates]", '[embedding]\nmodel = "untrained"\n\n[gates]')
    make_untrained(suite / "untrained")


def no_lexical_lane(suite: Path) -> None:
    edit_text(suite / "suite.toml", "[gates]", '[retrieval]\nmethod = "dense"\n\n[gates]')


def make_untrained(folder: Path) -> None:
    """The default model's shape with random weights."""
    import torch
    from safetensors.torch import load_file, save_file

    from kbgate.tasks.index.models import identify_model
    from kbgate.tasks.settings import Suite

    original = identify_model(Suite(folder=folder.parent, name="any")).folder
    shutil.copytree(original, folder)
    generator = torch.Generator().manual_seed(7)
    weights = load_file(folder / "model.safetensors")
    noise = {
        name: torch.randn(w.shape, generator=generator) * 0.02 if w.is_floating_point() else w for name, w in weights.items()
    }
    (folder / "model.safetensors").unlink()
    save_file(noise, folder / "model.safetensors", metadata={"format": "pt"})


FAST = (drop_titles, drop_every_20th, no_lexical_lane)


@pytest.mark.parametrize(
    "spoil", [*FAST, *(pytest.param(spoil, marks=pytest.mark.slow) for spoil in (cut_passages, small_chunks, untrained_model))]
)
def test_a_degradation_is_blocked_and_told(spoil: Callable[[Path], None], medication: Path, kbgate: CLI, home: Path) -> None:
    spoil(medication)
    assert kbgate("evaluate", medication) == 1
    verdict, report = last_verdict(home), last_report(home)
    assert verdict["verdict"] == "BLOCK"
    assert verdict["newly_failing"]
    assert all(case in report.replace("\\", "") for case in verdict["newly_failing"])
    assert "newly failing" in report.split("\n")[0] or "gold removed" in report.split("\n")[0]
    own = [f for f in verdict["figures"] if f["lane"] == verdict["method"] and not f["slice"]]
    contract = next(f for f in own if f["metric"] == "contract@5")
    assert contract["losses"] > 0
    assert f"| contract@5 | {contract['baseline']:.3f} | {contract['current']:.3f} |" in report
    assert "### Slices that fell" in report


def shuffle_rows(suite: Path) -> None:
    for name in ("cards.jsonl", "golden.jsonl", "baseline.cases.jsonl", "baseline.cards.jsonl"):
        rows = read_lines(suite / name)
        random.Random(3).shuffle(rows)
        write_lines(suite / name, rows)


def windows_line_ends(suite: Path) -> None:
    for file in suite.iterdir():
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))


def reorder_keys(suite: Path) -> None:
    for name in ("cards.jsonl", "golden.jsonl", "baseline.cases.jsonl"):
        edit_lines(suite / name, lambda row: dict(reversed(row.items())))


def byte_order_mark(suite: Path) -> None:
    for name in ("cards.jsonl", "golden.jsonl", "suite.toml"):
        (suite / name).write_bytes(b"\xef\xbb\xbf" + (suite / name).read_bytes())


@pytest.mark.parametrize("change", [shuffle_rows, windows_line_ends, reorder_keys, byte_order_mark])
def test_a_harmless_change_passes(change: Callable[[Path], None], medication: Path, kbgate: CLI, home: Path) -> None:
    change(medication)
    assert kbgate("evaluate", medication) == 0
    verdict = last_verdict(home)
    assert verdict["verdict"] == "PASS"
    assert verdict["cases"]["edited"] == []


@pytest.mark.slow
def test_the_cache_deleted_and_embedded_one_by_one(
    medication: Path, kbgate: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBGATE_HOME", str(tmp_path / "fresh"))
    edit_text(medication / "suite.toml", "[gates]", "[embedding]\nbatch = 1\n\n[gates]")
    assert kbgate("evaluate", medication) == 0
    assert last_verdict(tmp_path / "fresh")["verdict"] == "PASS"


@pytest.mark.slow
def test_five_rebuilds_rank_alike(medication: Path, kbgate: CLI, home: Path) -> None:
    rankings = set()
    for _ in range(5):
        assert kbgate("evaluate", medication) == 0
        run = run_named(home, last_verdict(home)["run"])
        rankings.add((run / "run.trec").read_text())
    assert len(rankings) == 1


@pytest.mark.slow
def test_a_footer_on_every_card_does_not_break_the_index(medication: Path, kbgate: CLI, home: Path) -> None:
    footer = "\n\nThis leaflet was checked by the pharmacy board. " + "It does not replace a conversation. " * 10
    edit_lines(medication / "cards.jsonl", lambda card: {**card, "text": card["text"] + footer.rstrip()})
    for file in medication.glob("baseline*"):
        file.unlink()
    assert kbgate("baseline", "update", medication, "--reason", "footer") == 0
    for _ in range(5):
        assert kbgate("evaluate", medication) == 0
        assert last_verdict(home)["verdict"] == "PASS"


@pytest.mark.slow
def test_more_gained_than_lost_says_both_and_how_to_accept(medication: Path, kbgate: CLI, home: Path) -> None:
    """The baseline: the lexical lane alone, failing canaries accepted. The hybrid loses a few cases and gains more."""
    edit_text(medication / "suite.toml", "[gates]", '[retrieval]\nmethod = "bm25"\n\n[gates]')
    for file in medication.glob("baseline*"):
        file.unlink()
    assert kbgate("baseline", "update", medication, "--reason", "words only", "--accept-regression") == 0
    edit_text(medication / "suite.toml", 'method = "bm25"', 'method = "hybrid"')
    assert kbgate("evaluate", medication) == 1
    verdict = last_verdict(home)
    assert len(verdict["newly_passing"]) > len(verdict["newly_failing"]) > 0
    first = verdict["reasons"][0]["sentence"]
    assert f"{len(verdict['newly_passing'])} newly passing" in first
    assert "--accept-regression" in first
    assert kbgate("baseline", "update", medication, "--reason", "hybrid") == 1
    assert kbgate("baseline", "update", medication, "--reason", "hybrid", "--accept-regression") == 0
    assert kbgate("evaluate", medication) == 0
