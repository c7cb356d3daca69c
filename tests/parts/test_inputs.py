"""A chunking method, and a reader of another kind of card file, is one function each."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbgate.tasks import exam
from kbgate.tasks.index.chunking import CHUNKERS, Span, chunker
from kbgate.tasks.inputs.readers import Reading, reader
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.records import Record, read_table, read_text
from tests.parts.school import Cards, School


def bring_sentences(version: int) -> None:
    @chunker("sentences", version=version)
    def sentences(text: str, size: int, overlap: int) -> list[Span]:
        """One chunk a sentence that ends in a full stop."""
        ends = [place + 1 for place, letter in enumerate(text) if letter == "."]
        return list(zip([0, *ends], ends, strict=False))


def test_a_chunking_method(school: School) -> None:
    bring_sentences(1)
    school.chunker = "sentences"
    school.cards["bread"] = ("Baking bread", "Knead flour and water. Add salt and yeast.")
    school.walk()
    counts = school.verdict["counts"]
    assert (counts["cards"], counts["chunks"]) == (13, 14)


def test_its_version_is_part_of_the_index(school: School) -> None:
    school.chunker = "sentences"
    prepared = []
    for version in (1, 1, 2):
        if "sentences" in CHUNKERS:
            CHUNKERS.remove("sentences")
        bring_sentences(version)
        school.write()
        prepared.append(exam.prepare(exam.load(load_suite(school.folder), school.home), school.home))
    first, same, other = prepared
    assert first.fingerprint == same.fingerprint != other.fingerprint
    assert first.settings == same.settings != other.settings


def save_tabs(folder: Path, cards: Cards) -> None:
    lines = ["id\ttitle\ttext", *(f"{name}\t{title}\t{text}" for name, (title, text) in cards.items())]
    (folder / "cards.tsv").write_text("\n".join(lines), encoding="utf-8")


def save_documents(folder: Path, cards: Cards) -> None:
    (folder / "docs").mkdir(exist_ok=True)
    for name, (title, text) in cards.items():
        (folder / "docs" / f"{name}.RST").write_text(f"{title}\n{'=' * len(title)}\n\n{text}\n", encoding="utf-8")


def test_a_reader_of_tables(school: School, capsys: pytest.CaptureFixture[str]) -> None:
    school.kb, school.save = "cards.tsv", save_tabs
    school.write()
    assert school.run("check") == 2
    assert "is none of .csv, .jsonl, .parquet, a BEIR folder" in capsys.readouterr().err

    @reader(".tsv")
    def read_tabs(path: Path, root: Path) -> Reading:
        """One card a line, its values apart by tabs."""
        return read_table(path, delimiter="\t")

    school.walk()
    assert school.run("check") == 0


def test_a_reader_of_documents(school: School, capsys: pytest.CaptureFixture[str]) -> None:
    school.kb, school.save = "docs", save_documents
    school.write()
    assert school.run("check") == 2
    assert "holds neither corpus.jsonl nor any .markdown or .md or .txt file" in capsys.readouterr().err

    @reader(".rst", document=True)
    def read_rst(path: Path, root: Path) -> Reading:
        """A document whose first line is its title."""
        title, _, text = read_text(path).partition("\n")
        return [Record(path.name, 1, {"id": path.stem, "title": title, "text": text.lstrip("=").strip()})], []

    school.walk()
    assert school.verdict["counts"]["cards"] == 13
