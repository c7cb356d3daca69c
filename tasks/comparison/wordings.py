"""Edited cases as they were worded before: which are asked again, and how they fare in the index of today.

Whoever edits a failing case must not thereby mend the index. Everything here is by the content hash of a wording: two cases
that once asked the same are asked once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from kbgate.tasks.domain import Baseline, Cards, Case, Cases, Evidence, Inputs, KnowledgeBase, Mode, Predicate, Vanished
from kbgate.tasks.errors import did_you_mean
from kbgate.tasks.records import nfc
from kbgate.tasks.schema import AnchoredCase, Asked, BaselineCase, Written


def earlier_wordings(golden: Cases, baseline: Baseline | None, mode: Mode, judges_edits: bool) -> Cases:
    """What has to be asked once more, by content hash.

    `judges_edits`: the baseline's wording of every edited case, as a pull request is judged by. A full run also asks the
    anchor's, for a baseline that it may become.
    """
    if baseline is None:
        return {}
    asked: dict[str, Asked] = {}
    for name, row in follow_renames(baseline, golden).items() if judges_edits else ():
        if name in golden and golden[name].hash != row.hash:
            asked[row.hash] = row.asked
    for _, now, entry in anchored_cases(baseline, golden) if mode == Mode.FULL else ():
        if now is not None and golden[now].hash != entry.hash and entry.asked is not None:
            asked[entry.hash] = entry.asked
    return {wording: case_of(wording, asked[wording]) for wording in sorted(asked)}


def case_of(wording: str, asked: Asked) -> Case:
    """A wording as a case that bears its own content hash as a name, to be asked again as it was asked then."""
    return Case(
        id=wording,
        query=asked.query,
        kind=asked.kind,
        language=asked.language,
        groups=tuple(tuple(group) for group in asked.groups),
        grades=asked.grades,
        filter=_predicate(asked.filter),
        entitled=_predicate(asked.entitled),
        right_filter=_predicate(asked.right_filter),
        cluster=wording,
        evidence=tuple(Evidence(span.card, span.text, span.start, span.end) for span in asked.evidence),
        hash=wording,
    )


def _predicate(written: Written | None) -> Predicate | None:
    return cast("Predicate | None", written)  # what a checked case said, as JSON


def follow_renames(baseline: Baseline, golden: Cases) -> dict[str, BaselineCase]:
    """The baseline's rows, those of renamed cases under their new ids: another name makes no other case of it."""
    gone = {row.hash: name for name, row in baseline.cases.items() if name not in golden}
    unknown = [case for case in golden.values() if case.id not in baseline.cases]
    renamed = {gone[case.hash]: case.id for case in unknown if case.hash in gone}
    return {renamed.get(name, name): row for name, row in baseline.cases.items()}


def edited_cases(inputs: Inputs) -> frozenset[str]:
    """The cases that ask something else now than in the baseline, or want another answer."""
    then = follow_renames(inputs.baseline, inputs.golden.cases) if inputs.baseline else {}
    return frozenset(name for name, case in inputs.golden.cases.items() if name in then and then[name].hash != case.hash)


def anchored_cases(baseline: Baseline, golden: Cases) -> list[tuple[str, str | None, AnchoredCase]]:
    """Every case of the anchor: (its id then, its id now or None where it is asked no more, what it was).

    A case keeps its place whatever became of it: edited, renamed, taken out, or taken out and put back. What it asked is there
    where it is not what it asks now.
    """
    rows = [(name, row, row.anchor) for name, row in follow_renames(baseline, golden).items() if row.anchor is not None]
    cases = [(row.id, name, _with_wording(entry, row, golden.get(name))) for name, row, entry in rows]
    cases += [(name, name, entry) for name, entry in baseline.summary.anchor.removed.items()]
    taken = {name for name, _, _ in rows if name in golden}
    by_hash = {case.hash: case.id for case in golden.values()}
    placed: list[tuple[str, str | None, AnchoredCase]] = []
    for number, (then, name, entry) in enumerate(cases):
        now: str | None = name
        if number >= len(rows) or name not in golden:
            # Taken out, and put back perhaps: under its name, or as what it was under another one.
            free = (back for back in (name, by_hash.get(entry.hash)) if back in golden and back not in taken)
            now = next(free, None)
            taken.add(now or "")
        placed.append((then, now, entry))
    return placed


def _with_wording(entry: AnchoredCase, row: BaselineCase, case: Case | None) -> AnchoredCase:
    """The entry with what the case asked, where its row says that and will say something else."""
    if entry.asked is not None or entry.hash != row.hash or (case is not None and case.hash == entry.hash):
        return entry
    return entry.model_copy(update={"asked": row.asked})


def lost_wordings(wordings: Cases, kb: KnowledgeBase) -> frozenset[str]:
    """The wordings whose answer was an excerpt that no longer stands in its card: finding the card finds no answer."""
    return frozenset(name for name, case in wordings.items() if any(gone.excerpt for gone, _ in missing_gold(case, kb.cards)))


def missing_gold(case: Case, cards: Cards) -> Iterator[tuple[Vanished, str]]:
    """Gold that is not in the knowledge base as it is, and the sentence for whoever wrote the label."""
    for card in sorted(case.grades):
        if card not in cards:
            sentence = f"gold '{card}' of case '{case.id}' is no card of the knowledge base; {did_you_mean(card, cards)}"
            yield Vanished(case.id, card), sentence
    for span in case.evidence:
        card = nfc(span.card)
        if card not in cards:
            continue
        text = cards[card].text
        if span.text is not None and nfc(span.text) not in nfc(text):
            sentence = f"evidence '{span.text[:40]}' of case '{case.id}' does not stand in card '{card}'"
            yield Vanished(case.id, card, span.text), sentence
        if span.start is not None and span.end is not None and not 0 <= span.start < span.end <= len(text):
            place = f"{span.start} to {span.end}"
            sentence = f"evidence {place} of case '{case.id}' is outside card '{card}' ({len(text)} characters)"
            yield Vanished(case.id, card, place), sentence
