"""What the knowledge base looks like once it is cut and embedded: what a retriever can never find, and why."""

from __future__ import annotations

import datetime as dt
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from kbgate.tasks.diagnosis.causes.no_description import needs_description
from kbgate.tasks.diagnosis.causes.repeated_text import repeated_lines
from kbgate.tasks.diagnosis.causes.table_header import table_spans
from kbgate.tasks.diagnosis.truncation import cut_off, questions_cut
from kbgate.tasks.domain import Card, Inputs, Material
from kbgate.tasks.errors import counted, named
from kbgate.tasks.inputs.folder import told
from kbgate.tasks.predicates import is_early, is_over
from kbgate.tasks.records import read_text
from kbgate.tasks.tables import Chunks
from kbgate.tasks.words import all_words

NEAR, SHINGLE, PERMUTATIONS = 0.8, 5, 128
"""Two cards are near-duplicates when so large a share of their runs of five words is the same."""
SURE, LONG = 0.75, 120
"""A detected language speaks against a declared one when so sure, of a text of so many characters."""
_LIST = re.compile(r"(?:^[ \t]*(?:[-*•]|\d+[.)])[ \t]+\S.*(?:\n|\Z)){3,}", re.MULTILINE)
_ALSO = {"nb": "no", "nn": "no"}
"""Languages the detector knows by another name."""
_VISIBLE = frozenset("\n\t\r")


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that was looked for."""

    name: str
    sentence: str
    cards: tuple[str, ...] = ()
    """Whom it concerns; empty where it is a mere count."""


def inspect(inputs: Inputs, material: Material, chunks: Chunks, as_of: dt.datetime) -> tuple[Observation, ...]:
    """Everything an ingest report says, in the order it is read; `chunks`: as they were cut."""
    cards = tuple(inputs.kb.cards.values())
    looks = (
        _rejected(inputs),
        _left_out(inputs),
        _chunks(chunks),
        _cut(inputs, material, chunks),
        _questions_cut(inputs, material),
        _split(cards, chunks),
        _undescribed(cards),
        _invalid(cards, as_of),
        _near_duplicates(cards),
        _repeated(cards),
        _characters(cards),
        _normal_form(inputs),
        _languages(cards),
        _sources(cards, chunks),
    )
    return tuple(observation for look in looks for observation in look)


def _observed(name: str, none: str, some: str, cards: Iterable[str]) -> Observation:
    concerned = tuple(dict.fromkeys(cards))
    return Observation(name, f"{len(concerned)} {some}: {named(concerned)}" if concerned else none, concerned)


def _rejected(inputs: Inputs) -> Iterator[Observation]:
    problems = [str(problem) for problem in inputs.kb.problems]
    yield Observation(
        "rejected", f"{counted(inputs.kb.refusals, 'card')} rejected" if problems else "no card was rejected", tuple(problems)
    )


def _left_out(inputs: Inputs) -> Iterator[Observation]:
    left_out = inputs.kb.left_out
    names = tuple(name for names in left_out.values() for name in names)
    yield Observation("files not read", told(left_out) or "every file was read", names)


def _chunks(chunks: Chunks) -> Iterator[Observation]:
    counts = Counter(chunks.cards)
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:3]
    largest = ", ".join(f"{card} {count}" for card, count in most)
    middle = f"{median(counts.values()):g} in the middle, {max(counts.values())} at most ({largest})"
    yield Observation("chunks", f"{len(chunks)} chunks of {len(counts)} cards: {middle}")


def _cut(inputs: Inputs, material: Material, chunks: Chunks) -> Iterator[Observation]:
    if material.model is None:
        yield Observation("input limit", "no model reads the chunks: the method ranks by words alone")
        return
    limit, tails = cut_off(material.model, inputs.suite.embedding.passage_prefix, chunks.texts)
    lost = sum(len(tail) for tail in tails)
    cards = [card for card, tail in zip(chunks.cards, tails, strict=True) if tail]
    yield _observed(
        "input limit",
        f"the model reads every chunk whole (its limit is {limit} tokens)",
        f"cards have chunks longer than the {limit} tokens the model reads; {lost} characters are dropped in silence",
        cards,
    )


def _questions_cut(inputs: Inputs, material: Material) -> Iterator[Observation]:
    if material.model is not None:
        yield Observation("questions", questions_cut(inputs.suite, material.model, inputs.golden.cases)[1])


def _split(cards: Sequence[Card], chunks: Chunks) -> Iterator[Observation]:
    spans: dict[str, list[tuple[int, int]]] = {}
    for card, start, end in zip(chunks.cards, chunks.starts, chunks.ends, strict=True):
        spans.setdefault(card, []).append((start, end))

    def is_split(card: Card, blocks: Iterable[tuple[int, int]]) -> bool:
        return any(not any(start <= first and last <= end for start, end in spans.get(card.id, ())) for first, last in blocks)

    tables = [card.id for card in cards if is_split(card, table_spans(card.text))]
    lists = [
        card.id
        for card in cards
        if is_split(card, ((m.start(), m.start() + len(m.group().strip())) for m in _LIST.finditer(card.text)))
    ]
    yield _observed("tables", "no table is split over chunks", "cards have a table that is split over chunks", tables)
    yield _observed("lists", "no list is split over chunks", "cards have a list that is split over chunks", lists)


def _undescribed(cards: Sequence[Card]) -> Iterator[Observation]:
    bare = [card.id for card in cards if needs_description(card.text) and not card.description.strip()]
    yield _observed(
        "descriptions", "every table and figure has a description", "cards hold a table or figure without a description", bare
    )


def _invalid(cards: Sequence[Card], as_of: dt.datetime) -> Iterator[Observation]:
    over, early = ([card.id for card in cards if invalid(card, as_of)] for invalid in (is_over, is_early))
    day = as_of.date()
    yield _observed("expired", f"no card is expired on {day}", f"cards are expired on {day}", over)
    yield _observed("not yet valid", f"every card is valid from {day} on or before", f"cards are not yet valid on {day}", early)


def _near_duplicates(cards: Sequence[Card]) -> Iterator[Observation]:
    from datasketch import MinHash, MinHashLSH

    index, pairs = MinHashLSH(threshold=NEAR, num_perm=PERMUTATIONS), []
    for card in cards:
        words = all_words(card.text, card.language)
        parts = {" ".join(words[at : at + SHINGLE]) for at in range(max(len(words) - SHINGLE + 1, 1))} if words else set()
        if not parts:
            continue
        sketch = MinHash(num_perm=PERMUTATIONS)
        sketch.update_batch([part.encode() for part in parts])
        pairs += [f"{other} and {card.id}" for other in sorted(index.query(sketch))]
        index.insert(card.id, sketch)
    yield _observed("near-duplicates", "no two cards are near-duplicates", "pairs of cards are near-duplicates", pairs)


def _repeated(cards: Sequence[Card]) -> Iterator[Observation]:
    lines = repeated_lines([card.text for card in cards])
    on_cards = [f"'{line[:60]}' on {count} cards" for line, count in lines.items()]
    yield _observed("repeated lines", "no line stands on many cards", "lines stand on many cards", on_cards)


def _characters(cards: Sequence[Card]) -> Iterator[Observation]:
    texts = {card.id: "\n".join((card.title, card.description, card.text)) for card in cards}
    unseen = [
        name for name, text in texts.items() if any(unicodedata.category(c) in ("Cf", "Cc") and c not in _VISIBLE for c in text)
    ]
    yield _observed("invisible characters", "no card has invisible characters", "cards have invisible characters", unseen)


def _normal_form(inputs: Inputs) -> Iterator[Observation]:
    """Where the files themselves are not in NFC: kbgate reads them so, another reader of the same files may not."""
    loose = [
        f"{file.name}:{number}"
        for file in _text_files(inputs)
        for number, line in enumerate(read_text(file).split("\n"), start=1)
        if not unicodedata.is_normalized("NFC", _unescaped(line))
    ]
    yield _observed("normal form", "every line is in Unicode's form NFC", "lines are not in Unicode's form NFC", loose)


def _text_files(inputs: Inputs) -> list[Path]:
    """The files that cards were read from, those that are text."""
    path = inputs.suite.folder / inputs.suite.kb.path
    if not path.is_dir():
        return [path] if path.suffix.lower() != ".parquet" else []
    return [path / name for name in sorted({card.file for card in inputs.kb.cards.values()})]


def _unescaped(line: str) -> str:
    """A line of JSON with the characters its escapes stand for; any other line as it is."""
    try:
        return json.dumps(json.loads(line), ensure_ascii=False) if "\\u" in line else line
    except ValueError:
        return line


def _languages(cards: Sequence[Card]) -> Iterator[Observation]:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    odd = []
    for card in cards:
        declared = card.language.partition("-")[0].lower()
        declared = _ALSO.get(declared, declared)
        if declared and len(card.text) >= LONG:
            detected, sure = identifier.classify(card.text)
            if detected != declared and sure >= SURE:
                odd.append(f"{card.id} ({declared}, reads like {detected})")
    yield _observed(
        "languages", "no text speaks against its declared language", "cards are in another language than they declare", odd
    )


def _sources(cards: Sequence[Card], chunks: Chunks) -> Iterator[Observation]:
    good = {card.id for card in cards if _is_source(card.source_url)}
    count = sum(card in good for card in chunks.cards)
    share = 100 * count / len(chunks) if len(chunks) else 0.0
    yield Observation(
        "sources", f"{count} of {len(chunks)} chunks ({share:.0f} %) have a well-formed source_url (none was fetched)"
    )


def _is_source(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https", "file", "s3", "gs") and bool(parts.netloc or parts.path)
