"""The worked stories: something happens to a knowledge base, and the diagnosis says what, with the proof."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.diagnosis.diagnosis import groups_of
from kbgate.tasks.domain import Index, Outcome, Question, Ranked
from kbgate.tasks.findings import Finding
from kbgate.tasks.identity import identity_of
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.retrieval import RETRIEVERS, ScoreKind, Search, retriever
from kbgate.tasks.runs.archive import keep_cards
from kbgate.tasks.settings import Suite
from kbgate.tasks.studies.trial import accept, trial_of
from kbgate.tasks.tables import Hits
from tests.conftest import MEDICATION, edit_lines, edit_text, read_lines, write_lines

Edit = Callable[[dict[str, Any]], dict[str, Any] | None]


@pytest.fixture
def suite(medication: Path, home: Path) -> Path:
    """The bundled knowledge base with a quarter of its questions, its cards kept as a run would keep them."""
    keep_cards(home, identity_of(load_suite(medication)).archive, load_cards(load_suite(medication)).cards)
    return medication


@pytest.fixture
def nothing_kept(home: Path, tmp_path: Path) -> Path:
    """A home that has the vectors and has never seen a card."""
    (tmp_path / "nothing-kept").mkdir()
    (tmp_path / "nothing-kept" / "vectors").symlink_to(home / "vectors")
    return tmp_path / "nothing-kept"


def findings_of(folder: Path, home: Path) -> tuple[Finding, ...]:
    trial = trial_of(folder, home, 200)
    assert trial.trouble == ""
    return trial.findings


def only(findings: tuple[Finding, ...], case: str) -> Finding:
    (finding,) = [finding for finding in findings if finding.case == case]
    return finding


def change(suite: Path, card: str, **fields: Any) -> None:
    edit_lines(suite / "cards.jsonl", lambda row: {**row, **fields} if row["id"] == card else row)


def test_an_unchanged_suite_has_no_finding(suite: Path, home: Path) -> None:
    assert findings_of(suite, home) == ()


def test_a_shuffled_suite_has_no_finding(suite: Path, home: Path) -> None:
    for name in ("cards.jsonl", "golden.jsonl"):
        rows = read_lines(suite / name)
        random.Random(3).shuffle(rows)
        write_lines(suite / name, rows)
    assert findings_of(suite, home) == ()


def test_unrelated_new_cards_are_named_by_no_finding(suite: Path, home: Path) -> None:
    places = ("Lisbon", "Quito", "Hanoi", "Tromsø", "Perth", "Lagos", "Turin", "Osaka", "Bergen", "Cusco")
    rows = read_lines(suite / "cards.jsonl")
    for number in range(20):
        text = f"Trams in {places[number % 10]} run every {number + 4} minutes; line {number} ends at the harbour bridge."
        rows.append({"id": f"tram-{number}", "title": f"Tram line {number}", "text": text, "language": "en"})
    write_lines(suite / "cards.jsonl", rows)
    named = {name for finding in findings_of(suite, home) for name in (*finding.culprits, *dict(finding.above))}
    assert not any(name.startswith("tram-") for name in named)


def test_eighty_new_documents_push_an_old_table_from_rank_4_to_14_and_are_named(tmp_path: Path, home: Path) -> None:
    """Words alone, so that every rank is known: a document ranks by how often it says what is asked."""
    folder = tmp_path / "travel"
    folder.mkdir()
    (folder / "suite.toml").write_text('name = "travel"\ntop_k = 5\nas_of = 2026-06-01\n[retrieval]\nmethod = "bm25"\n')

    def says(name: str, times: int) -> dict[str, Any]:
        rest = " ".join(f"word{n}" for n in range(40 - times))
        foot = "" if name.startswith(("older", "table")) else "\nAll new documents end with one and the same line."
        return {"id": name, "title": f"Document {name}", "text": " ".join(["allowance"] * times) + f" {rest}{foot}"}

    old = [says("older-1", 20), says("older-2", 18), says("older-3", 16), says("table", 10), says("older-4", 5)]
    write_lines(folder / "cards.jsonl", old)
    write_lines(folder / "golden.jsonl", [{"id": "allowance", "query": "allowance", "expected": ["table"]}])
    accept(folder, home)
    keep_cards(home, identity_of(load_suite(folder)).archive, load_cards(load_suite(folder)).cards)
    beats, others = [says(f"new-{n}", 14) for n in range(10)], [says(f"new-{n}", 1) for n in range(10, 80)]
    write_lines(folder / "cards.jsonl", [*old, *beats, *others])
    finding = only(findings_of(folder, home), "allowance")
    assert (finding.cause, finding.proven) == ("displaced", True)
    assert (finding.evidence["rank at the baseline"], finding.evidence["rank now"]) == (4, 14)
    assert {card for card, _ in finding.above} == {card["id"] for card in beats}
    assert dict(finding.above)["new-3"] == "Document new-3"
    # Nine of the ten must go before it stands at 5 again.
    assert "stands at 5" in finding.sentence
    assert len(finding.culprits) == 9
    assert set(finding.culprits) < {card["id"] for card in beats}


def test_a_table_without_description(suite: Path, home: Path) -> None:
    change(suite, "contraceptive-missed", description="")
    findings = findings_of(suite, home)
    assert {(f.cause, f.gold, f.proven) for f in findings} == {("no_description", "contraceptive-missed", True)}


def test_a_table_cut_from_its_header(suite: Path, home: Path) -> None:
    def cut(row: dict[str, Any]) -> dict[str, Any]:
        lines = row["text"].split("\n")
        rules = [place for place, line in enumerate(lines) if line.startswith("|--") or line.startswith("| --")]
        return {**row, "text": "\n".join(lines[rules[0] + 1 :])} if rules else row

    edit_lines(suite / "cards.jsonl", cut)
    causes = {finding.cause for finding in findings_of(suite, home)}
    assert "table_header" in causes


def test_a_filter_that_hides_the_gold(suite: Path, home: Path) -> None:
    edit_lines(
        suite / "golden.jsonl", lambda row: {**row, "filter": {"language": "es-419"}} if row["id"] == "syrup-spoon" else row
    )
    finding = only(findings_of(suite, home), "syrup-spoon")
    assert (finding.cause, finding.proven, finding.evidence["rank now"]) == ("filter", True, None)
    assert finding.evidence["rank with the filter lifted"] == 1
    assert "syrup-spoon" in finding.culprits


def test_a_label_that_no_longer_fits_the_filter(suite: Path, home: Path) -> None:
    change(suite, "hiv-art-daily", domain="hiiv")
    finding = only(findings_of(suite, home), "f-hiv-why-daily")
    assert (finding.cause, finding.proven) == ("label", True)
    assert "was 'hiv' and is 'hiiv'" in finding.sentence


def test_a_card_that_expired(suite: Path, home: Path) -> None:
    change(suite, "literacy-spoon", valid_from="", valid_until="2026-05-31")
    findings = findings_of(suite, home)
    assert {(f.cause, f.gold) for f in findings} == {("validity", "literacy-spoon")}
    assert "expired on 2026-05-31" in findings[0].sentence


def test_a_card_that_was_removed_and_one_that_was_rejected(suite: Path, home: Path) -> None:
    edit_text(suite / "suite.toml", "[kb]\n", '[kb]\non_bad_card = "reject"\n')
    edit_lines(suite / "cards.jsonl", lambda row: None if row["id"] == "epilepsy-missed" else row)
    change(suite, "literacy-spoon", valid_from="soon")
    by_gold = {finding.gold: finding for finding in findings_of(suite, home)}
    assert by_gold["epilepsy-missed"].cause == "removed"
    assert by_gold["epilepsy-missed"].above == ()
    assert by_gold["literacy-spoon"].cause == "rejected"
    assert "cards.jsonl:" in by_gold["literacy-spoon"].sentence
    assert "valid_from" in by_gold["literacy-spoon"].sentence


def test_a_text_that_was_cut_short_and_one_that_was_decoded_wrongly(suite: Path, home: Path) -> None:
    def spoil(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] == "bp-why":
            return {**row, "text": row["text"][:60]}
        return {**row, "text": row["text"].encode().decode("latin-1")} if row["id"] == "bp-why.es" else row

    edit_lines(suite / "cards.jsonl", spoil)
    by_gold = {finding.gold: finding for finding in findings_of(suite, home)}
    assert (by_gold["bp-why"].cause, by_gold["bp-why"].proven) == ("text_lost", True)
    assert "had 848 characters and has 60" in by_gold["bp-why"].sentence
    assert (by_gold["bp-why.es"].cause, by_gold["bp-why.es"].proven) == ("mojibake", True)


@pytest.mark.slow
def test_an_index_that_loses_what_exact_search_finds(suite: Path, home: Path) -> None:
    edit_text(suite / "suite.toml", "[gates]\n", "[index]\nmax_neighbors = 2\nef_construction = 1\nef_search = 1\n\n[gates]\n")
    findings = findings_of(suite, home)
    lost = [finding for finding in findings if finding.cause == "lost_by_index"]
    assert len(lost) > len(findings) / 2
    for finding in lost:
        now, exact = finding.evidence["rank now"], finding.evidence["rank by exact search"]
        assert now is None or now > 5
        assert exact is not None
        assert exact <= 5


@pytest.mark.slow
def test_the_same_footer_on_every_card(suite: Path, home: Path) -> None:
    words = " ".join(read_lines(suite / "cards.jsonl")[0]["text"].split())[:300]
    edit_lines(suite / "cards.jsonl", lambda row: {**row, "text": f"{words}\n\n{row['text']}"})
    findings = findings_of(suite, home)
    assert findings
    assert {finding.cause for finding in findings} == {"repeated_text"}
    assert "76 cards carry the same line" in findings[0].sentence


@pytest.mark.slow
def test_chunks_too_small_to_say_anything(suite: Path, home: Path) -> None:
    edit_text(suite / "suite.toml", "[gates]\n", "[chunking]\nsize = 60\noverlap = 0\n\n[gates]\n")
    findings = findings_of(suite, home)
    assert {finding.cause for finding in findings} == {"chunk_split"}
    assert "chunking.size was 384 and is 60" in findings[0].sentence


@pytest.mark.slow
def test_another_prefix(suite: Path, home: Path) -> None:
    edit_text(suite / "suite.toml", "[gates]\n", '[embedding]\nquery_prefix = "zzz zzz zzz zzz: "\n\n[gates]\n')
    findings = findings_of(suite, home)
    assert {finding.cause for finding in findings} == {"settings"}
    assert findings[0].culprits == ("embedding.query_prefix",)


def lone(tmp_path: Path, settings: str, cards: list[dict[str, Any]], cases: list[dict[str, Any]]) -> Path:
    folder = tmp_path / "lone"
    folder.mkdir()
    (folder / "suite.toml").write_text(f'name = "lone"\ntop_k = 1\nk_values = [1]\nas_of = 2026-06-01\n{settings}')
    write_lines(folder / "cards.jsonl", cards)
    write_lines(folder / "golden.jsonl", cases)
    return folder


FILLER = (
    "The office keeps its archive in the cellar. Boxes are numbered by year and shelf. Visitors sign the book at the door. "
    "The lift is inspected every spring. Lamps in the corridor are replaced on Fridays. Bicycles stand in the yard. "
)
ANSWER = "A parking permit for electric scooters costs twelve euros a month and is issued by the janitor."
RIVAL = "Parking permits: how to apply for a parking permit for cars and for visitors, and where to put it."


@pytest.mark.parametrize("length", [6, 24])
def test_an_answer_beyond_what_the_model_reads(length: int, tmp_path: Path, home: Path) -> None:
    """Also beyond what it would read of the rest."""
    cards = [{"id": "handbook", "text": FILLER * length + ANSWER}, {"id": "permits", "text": RIVAL}]
    cases = [
        {"id": "scooter", "query": "What does a parking permit for an electric scooter cost a month?", "expected": ["handbook"]}
    ]
    folder = lone(tmp_path, '[chunking]\nmethod = "whole"\n[retrieval]\nmethod = "dense"\n', cards, cases)
    finding = only(findings_of(folder, home), "scooter")
    assert (finding.cause, finding.proven) == ("input_limit", True)
    assert "the model reads 256 tokens" in finding.sentence


@pytest.mark.parametrize(("length", "cause"), [(6, "question_limit"), (0, "")])
def test_a_question_that_the_model_does_not_read_to_its_end(length: int, cause: str, tmp_path: Path, home: Path) -> None:
    cards = [{"id": "handbook", "text": ANSWER}, {"id": "cellar", "text": FILLER}]
    query = FILLER * length + "What does a parking permit for an electric scooter cost a month?"
    cases = [{"id": "scooter", "query": query, "expected": ["handbook"]}]
    findings = findings_of(lone(tmp_path, '[retrieval]\nmethod = "dense"\n', cards, cases), home)
    assert [(finding.cause, finding.proven) for finding in findings] == ([(cause, True)] if cause else [])
    for finding in findings:
        assert re.search(
            r"reads 256 tokens of the question and drops its last \d+ characters; asked by these alone", finding.sentence
        )
        assert finding.sentence.endswith("'handbook' stands at 1")


def test_a_span_cut_by_a_chunks_border(tmp_path: Path, home: Path) -> None:
    rival = "A parking permit for a car costs forty euros a month."
    cards = [{"id": "handbook", "text": FILLER[:150] + ANSWER + " " + FILLER}, {"id": "permits", "text": rival}]
    cases = [
        {
            "id": "scooter",
            "query": "What does a parking permit for an electric scooter cost a month?",
            "evidence": [{"card": "handbook", "text": ANSWER}],
        }
    ]
    settings = '[chunking]\nsize = 100\noverlap = 0\n[retrieval]\nmethod = "dense"\n'
    finding = only(findings_of(lone(tmp_path, settings, cards, cases), home), "scooter")
    assert (finding.cause, finding.proven) == ("chunk_split", True)
    assert "cut by a chunk's border" in finding.sentence


@pytest.fixture
def shared_words() -> Iterator[None]:
    """A method that somebody brought: a card scores by the words it shares with the question."""

    @retriever("shared-words", scores=ScoreKind.OTHER)
    def connect(index: Index, suite: Suite) -> Search:
        """Words in common."""

        def search(questions: Sequence[Question], k: int) -> list[Ranked]:
            return [Ranked(Outcome.ANSWERED, {"shared-words": ranked(question.text)}) for question in questions]

        def ranked(text: str) -> Hits:
            asked, scores = set(text.lower().split()), dict[str, float]()
            for row, cards in zip(index.rows.texts, index.rows.cards, strict=True):
                shared = len(asked & set(row.lower().split()))
                scores |= {card: max(shared, scores.get(card, 0.0)) for card in cards}
            return Hits.ranked(scores)

        return search

    yield
    RETRIEVERS.remove("shared-words")


@pytest.mark.usefixtures("shared_words")
def test_a_method_that_somebody_brought_is_diagnosed_as_any_other(tmp_path: Path, home: Path) -> None:
    cards = [{"id": "handbook", "text": ANSWER}, {"id": "permits", "text": RIVAL}]
    cases = [{"id": "scooter", "query": "parking permit for electric scooters a month", "expected": ["handbook"]}]
    folder = lone(tmp_path, '[retrieval]\nmethod = "shared-words"\n', cards, cases)
    assert findings_of(folder, home) == ()
    accept(folder, home)
    keep_cards(home, identity_of(load_suite(folder)).archive, load_cards(load_suite(folder)).cards)
    write_lines(folder / "cards.jsonl", [{**cards[0], "text": "A parking"}, cards[1]])
    finding = only(findings_of(folder, home), "scooter")
    assert (finding.cause, finding.proven, finding.evidence["rank now"]) == ("text_lost", True, 2)


def test_what_no_single_change_brings_back_is_unknown(tmp_path: Path, home: Path) -> None:
    cards = [{"id": "cellar", "text": FILLER}, {"id": "permits", "text": RIVAL}]
    cases = [{"id": "odd", "query": "How do I apply for a parking permit?", "expected": ["cellar"]}]
    finding = only(findings_of(lone(tmp_path, '[retrieval]\nmethod = "dense"\n', cards, cases), home), "odd")
    assert (finding.cause, finding.proven) == ("unknown", False)


def test_a_diagnosis_that_cannot_be_made_changes_no_verdict(
    suite: Path, home: Path, kbgate: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kbgate.tasks.diagnosis import diagnosis

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("a rule divided by nothing")

    monkeypatch.setattr(diagnosis, "explain", broken)
    change(suite, "literacy-spoon", valid_from="", valid_until="2026-05-31")
    assert kbgate("evaluate", suite) == 1
    shown = capsys.readouterr().err
    assert "BLOCK" in shown
    assert "could not be looked into (ZeroDivisionError: a rule divided by nothing)" in shown


def test_explain_tells_a_case_in_full(suite: Path, kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    change(suite, "literacy-spoon", valid_from="", valid_until="2026-05-31")
    assert kbgate("explain", suite, "syrup-spoon") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("syrup-spoon: Can I just use a teaspoon for my baby's syrup?\n")
    assert "missing: literacy-spoon" in shown
    assert "validity (proven): 'literacy-spoon' expired on 2026-05-31; asked whatever the day, it stands at 1" in shown
    assert re.search(r"rank at the baseline +1 *\n", shown)
    assert kbgate("explain", suite, "syrup-spon") == 2
    assert "did you mean 'syrup-spoon'?" in capsys.readouterr().err


def test_the_verdict_holds_the_findings(
    suite: Path, home: Path, kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    change(suite, "literacy-spoon", valid_from="", valid_until="2026-05-31")
    assert kbgate("evaluate", suite, "--json") == 1
    shown = capsys.readouterr()
    written = json.loads(shown.out)["diagnosis"]
    assert {finding["cause"] for finding in written["findings"]} == {"validity"}
    assert "why: 3 × the card is expired or not yet valid: literacy-spoon" in shown.err


def test_gold_that_its_asker_may_not_see_is_told_as_hidden(
    kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(
        c
        for c in read_lines(MEDICATION / "golden.jsonl")
        if c.get("entitled") == {"audience": "public"} and "clinic-pdc" in str(c)
    )
    assert kbgate("explain", MEDICATION, case["id"]) == 0
    assert "hidden: clinic-pdc: its asker may not see it, and must not" in capsys.readouterr().out


def test_a_footer_that_was_always_there_is_no_cause(tmp_path: Path, home: Path) -> None:
    """Its removal might bring the gold back, but it did not come: the card lost its text."""
    foot = "All information about parking is given without warranty of any kind."
    cards = [{"id": f"c{n}", "text": f"Cabin {n} has {n + 1} beds.\n{foot}"} for n in range(8)]
    cards += [{"id": "permits", "text": RIVAL}, {"id": "handbook", "text": f"{ANSWER}\n{foot}"}]
    cases = [{"id": "scooter", "query": "What does a parking permit for an electric scooter cost?", "expected": ["handbook"]}]
    folder = lone(tmp_path, '[retrieval]\nmethod = "dense"\n', cards, cases)
    accept(folder, home)
    keep_cards(home, identity_of(load_suite(folder)).archive, load_cards(load_suite(folder)).cards)
    cards[-1] = {"id": "handbook", "text": f"Zzz.\n{foot}"}
    write_lines(folder / "cards.jsonl", cards)
    finding = only(findings_of(folder, home), "scooter")
    assert finding.cause == "text_lost"


def test_an_edited_card_that_did_nothing_is_no_culprit(suite: Path, home: Path) -> None:
    """It stands above the gold, but so it did before; what is put back as it was must bring the gold back."""
    rows = read_lines(suite / "cards.jsonl")
    asked = next(c["query"] for c in read_lines(suite / "golden.jsonl") if c["id"] == "pressure-feel-fine")
    for row in rows:
        if row["id"] in ("bp-why", "contraceptive-missed", "antidep-stopping"):
            row["text"] += "\n\nReviewed."
    rows += [
        {"id": f"faq-{n}", "title": asked, "text": asked + " Ask your pharmacist." * (n + 1), "language": "en",
         "metadata": {"audience": "public"}}
        for n in range(3)
    ]  # fmt: skip
    write_lines(suite / "cards.jsonl", rows)
    findings = findings_of(suite, home)
    assert only(findings, "pressure-feel-fine").cause == "displaced"
    lines = [group.sentence for group in groups_of(findings) if group.cause == "displaced"]
    assert lines
    assert all(re.fullmatch(r"\d+ displaced by faq-.*", line) for line in lines)
    culprits = {name for finding in findings if finding.cause == "displaced" for name in finding.culprits}
    assert culprits <= {"faq-0", "faq-1", "faq-2"}
    assert "displaced" in {finding.cause for finding in findings}


def test_evidence_that_was_edited_out_of_a_card_that_is_found(
    suite: Path, home: Path, kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = "binges raise the bleeding risk sharply", "heavy drinking makes bleeding far likelier"
    edit_text(suite / "cards.jsonl", old, new)
    finding = only(findings_of(suite, home), "ev-two-clues")
    assert (finding.cause, finding.sentence) == ("card_changed", "the evidence was edited out of 'warfarin-food'")
    assert kbgate("explain", suite, "ev-two-clues") == 0
    assert "card_changed (proven): the evidence was edited out of 'warfarin-food'" in capsys.readouterr().out


def test_evidence_that_is_gone_and_not_kept_is_unknown(suite: Path, nothing_kept: Path) -> None:
    edit_text(suite / "cards.jsonl", "binges raise the bleeding risk sharply", "heavy drinking makes bleeding far likelier")
    finding = only(findings_of(suite, nothing_kept), "ev-two-clues")
    assert (finding.cause, finding.proven) == ("unknown", False)
    assert "what the card was is not kept here" in finding.sentence


def test_a_removed_card_is_proven_only_where_it_returns(suite: Path, home: Path, nothing_kept: Path) -> None:
    edit_lines(suite / "cards.jsonl", lambda row: None if row["id"] == "travel-timezones" else row)
    for finding in findings_of(suite, home):
        then = finding.evidence["rank at the baseline"]
        assert (finding.cause, finding.proven) == ("removed", then is not None and then <= 5)
    for finding in findings_of(suite, nothing_kept):
        assert (finding.cause, finding.proven) == ("removed", False)


def test_explain_tells_no_ranks_of_another_method_or_day(
    suite: Path,
    home: Path,
    tmp_path: Path,
    kbgate: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The index of such a run is the same; what it found is not."""
    # A home of its own: in the session's, another test may have asked this very index that way.
    (home / "vectors").mkdir(exist_ok=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "vectors").symlink_to(home / "vectors")
    monkeypatch.setenv("KBGATE_HOME", str(tmp_path / "home"))
    assert kbgate("evaluate", suite) == 0
    assert kbgate("explain", suite, "syrup-spoon") == 0
    assert "ranks are those of the last run" in capsys.readouterr().out
    for old, new in (("as_of = 2026-06-01", "as_of = 1999-06-02"), ("[gates]\n", '[retrieval]\nmethod = "dense"\n\n[gates]\n')):
        edit_text(suite / "suite.toml", old, new)
        assert kbgate("explain", suite, "syrup-spoon") == 0
        assert "no run examined this index" in capsys.readouterr().out
        edit_text(suite / "suite.toml", new, old)


def test_golds_that_there_was_no_time_for_are_counted(
    suite: Path, kbgate: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kbgate.tasks.diagnosis.diagnosis.PATIENCE", -1.0)
    change(suite, "literacy-spoon", valid_from="", valid_until="2026-05-31")
    assert kbgate("evaluate", suite, "--json") == 1
    written = json.loads(capsys.readouterr().out)["diagnosis"]
    assert (written["findings"], written["left_out"]) == ([], 3)


def permits(tmp_path: Path, settings: str) -> Path:
    """Three questions whose gold stands below the cut, by their words alone."""
    cards = [{"id": "cellar", "text": FILLER}, *({"id": f"p{n}", "text": f"{RIVAL} {n}"} for n in range(3))]
    cases = [{"id": f"q{n}", "query": f"parking permit {n}?", "expected": ["cellar"]} for n in range(3)]
    return lone(tmp_path, f'[retrieval]\nmethod = "bm25"\n{settings}', cards, cases)


@pytest.mark.parametrize(("settings", "count"), [("", 0), ("[acceptance]\nquality = 0.0\nfailing_share = 1.0\n", 3)])
def test_acceptance_asks_for_every_cause_whatever_the_limit(
    settings: str, count: int, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbgate.tasks.diagnosis.diagnosis.PATIENCE", -1.0)
    trial = trial_of(permits(tmp_path, settings), home, 0)
    assert [finding.case for finding in trial.findings] == [f"q{n}" for n in range(count)]


def test_a_cause_that_is_not_proven_blocks_and_verify_says_that_it_did_not_recompute_it(
    tmp_path: Path, home: Path, kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = permits(tmp_path, "[acceptance]\nquality = 0.0\nfailing_share = 1.0\nnoise = 1.0\n")
    assert kbgate("evaluate", folder, "--json") == 1
    shown = capsys.readouterr()
    told = "3 failing cases without a proven cause or an allowance: q0 (no single change brings 'cellar' back), q1 ("
    assert told in shown.err
    (run,) = (home / "runs").glob(f"*/{json.loads(shown.out)['run']}")
    assert kbgate("verify", run) == 0
    shown = capsys.readouterr()
    assert "not recomputed: the causes of 3 cases (q0, q1, q2), for which [acceptance] asks" in shown.out


def test_changes_too_many_to_search_name_nobody(suite: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A card whose letters are broken shifts the words of another, which slips: found among few, not searched among many."""
    card = "hiv-art-daily.es"
    row = next(row for row in read_lines(suite / "cards.jsonl") if row["id"] == card)
    change(suite, card, text=row["text"].encode().decode("latin-1"))
    moved = [finding for finding in findings_of(suite, home) if finding.gold != card]
    assert moved
    assert {(finding.cause, finding.culprits) for finding in moved} == {("mojibake", (card,))}
    monkeypatch.setattr("kbgate.tasks.diagnosis.causes.side_effect._MOST", 0)
    for finding in findings_of(suite, home):
        if finding.gold != card:
            assert (finding.cause, finding.culprits, finding.proven) == ("side_effect", (), True)
            assert "too many to search" in finding.sentence


def test_what_was_so_when_the_gold_still_stood_is_no_cause(tmp_path: Path, home: Path) -> None:
    """The model never read the end of the handbook, and it was found; then a rival came, and that is why it fell."""
    cards = [{"id": "handbook", "text": FILLER * 6 + ANSWER}, {"id": "zoo", "text": "Penguins eat fish at noon."}]
    cases = [{"id": "scooter", "query": "What does a parking permit for an electric scooter cost?", "expected": ["handbook"]}]
    folder = lone(tmp_path, '[chunking]\nmethod = "whole"\n[retrieval]\nmethod = "dense"\n', cards, cases)
    accept(folder, home)
    keep_cards(home, identity_of(load_suite(folder)).archive, load_cards(load_suite(folder)).cards)
    write_lines(folder / "cards.jsonl", [*cards, {"id": "permits", "text": RIVAL}])
    finding = only(findings_of(folder, home), "scooter")
    assert (finding.cause, finding.culprits, finding.proven) == ("displaced", ("permits",), True)
