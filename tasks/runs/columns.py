"""A run as columns, written to Parquet and read again: rankings, figures, and the cards that were there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kbgate.tasks.domain import Cards, Mode, Outcome
from kbgate.tasks.records import canonical, replacing
from kbgate.tasks.results import Answer, Run, Scores
from kbgate.tasks.retrieval import run_of
from kbgate.tasks.tables import Floats, Hits, LaneScores

_TEXT = pa.large_string()
_FIGURE_KEY = ("lane", "case", "metric")
_ROUNDING = 1e-9


def write_parquet(table: pa.Table, path: Path) -> None:
    """Replace a Parquet file at once."""
    with replacing(path) as temporary:
        pq.write_table(table, temporary)


def run_table(run: Run) -> pa.Table:
    """One row per (case, card) that any lane held: rank and score of the method, rank in each lane, and how the case went.

    A card only a lane held has no rank; a case that brought nothing back has one row without a card.
    """
    lanes = [run.method, *sorted(lane for lane, rankings in run.lanes.items() if lane != run.method and rankings)]
    cases, counts = sorted(run.answers), []
    cards: list[str | None] = []
    scores: dict[str, list[Floats]] = {lane: [] for lane in lanes}
    ranks: dict[str, list[Floats]] = {lane: [] for lane in lanes}
    for case in cases:
        places = _places(run, lanes, case)
        cards += places or (None,)
        counts.append(max(len(places), 1))
        for lane in lanes:
            hits, rank, score = run.of(lane, case), np.full(counts[-1], np.nan), np.full(counts[-1], np.nan)
            rows = [places[card] for card in hits.ids]
            rank[rows], score[rows] = np.arange(1, len(hits) + 1), hits.scores
            ranks[lane].append(rank)
            scores[lane].append(score)
    answers = _answer_columns([run.answers[case] for case in cases])
    of_case = pa.array(np.repeat(np.arange(len(cases)), counts))
    columns = {
        "case": pa.array(cases, _TEXT).take(of_case),
        "rank": _numbers(ranks[run.method], pa.int32()),
        "unit": pa.array(cards, _TEXT),
        "card": pa.array(cards, _TEXT),
        "score": _numbers(scores[run.method], pa.float64()),
        **{name: column.take(of_case) for name, column in answers.items()},
    }
    for lane in lanes[1:]:
        columns[f"rank_{lane}"] = _numbers(ranks[lane], pa.int32())
        columns[f"score_{lane}"] = _numbers(scores[lane], pa.float64())
    return pa.table(columns)


def _places(run: Run, lanes: Sequence[str], case: str) -> dict[str, int]:
    """The row of each card within a case: the method's ranking, then what only other lanes held, by id."""
    ranked = run.of(run.method, case).ids
    others = {card for lane in lanes[1:] for card in run.of(lane, case).ids}.difference(ranked)
    return {card: place for place, card in enumerate([*ranked, *sorted(others)])}


def _answer_columns(answers: Sequence[Answer]) -> dict[str, pa.Array]:
    return {
        "outcome": pa.array([str(answer.outcome) for answer in answers], _TEXT),
        "ms": pa.array([answer.ms for answer in answers], pa.float64()),
        "eligible": pa.array([answer.eligible for answer in answers], pa.int64()),
        "extended": pa.array([answer.extended for answer in answers], pa.bool_()),
        "detail": pa.array([answer.detail for answer in answers], _TEXT),
        "predicate": pa.array([answer.predicate for answer in answers], _TEXT),
        "lane_ms": pa.array([canonical(dict(answer.lane_ms)) for answer in answers], _TEXT),
    }


def _numbers(parts: Sequence[Floats], kind: pa.DataType) -> pa.Array:
    """One column; what is not a number is absent."""
    values = np.concatenate(parts) if parts else np.empty(0)
    return pa.array(values, from_pandas=True).cast(kind)


def read_run(path: Path, method: str, mode: Mode) -> Run:
    """The run that run.parquet holds; raises ValueError where the ranks of a ranking are not 1, 2, 3 and so on."""
    table = pq.read_table(path)
    # One text a card, however often it stands in a ranking.
    place = table.column_names.index("card")
    table = table.set_column(place, "card", table["card"].combine_chunks().dictionary_encode())
    others = {name[5:]: (name, f"score_{name[5:]}") for name in table.column_names if name.startswith("rank_")}
    rankings = {lane: _rankings(table, *names) for lane, names in sorted({method: ("rank", "score"), **others}.items())}
    return run_of(method, _answers(table), {lane: ranked for lane, ranked in rankings.items() if ranked}, mode)


def _rankings(table: pa.Table, rank: str, score: str) -> dict[str, Hits]:
    """One lane of a run: its ranking of each case."""
    part = (
        table.select(["case", "card", rank, score])
        .filter(pc.is_valid(table[rank]))
        .sort_by([("case", "ascending"), (rank, "ascending")])
    )
    ranks, scores = part[rank].to_numpy(), part[score].to_numpy().astype(float)
    cards, rankings = part["card"].combine_chunks(), {}
    names, places = cards.dictionary.to_pylist(), cards.indices.to_numpy()
    for case, first, after in _stretches(part["case"]):
        if not np.array_equal(ranks[first:after], np.arange(1, after - first + 1)):
            raise ValueError(f"the column {rank} does not count the cards of {case} from 1")
        rankings[case] = Hits(tuple(names[place] for place in places[first:after].tolist()), scores[first:after])
    return rankings


def _stretches(cases: pa.ChunkedArray) -> Iterator[tuple[str, int, int]]:
    """(case, first row, row after the last) of a column in which each case stands in one stretch."""
    runs = pc.run_end_encode(cases.combine_chunks(), run_end_type=pa.int64())
    first = 0
    for case, after in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield case, first, after
        first = after


def _answers(table: pa.Table) -> dict[str, Answer]:
    """How each case went, from its first row."""
    lines = table.select(["case", "outcome", "ms", "eligible", "extended", "detail", "predicate", "lane_ms"])
    starts = [first for _, first, _ in _stretches(table["case"])]
    return {
        line["case"]: Answer(
            outcome=Outcome(line["outcome"]),
            ms=line["ms"],
            eligible=line["eligible"],
            extended=line["extended"],
            detail=line["detail"],
            predicate=line["predicate"],
            lane_ms=json.loads(line["lane_ms"]),
        )
        for line in lines.take(starts).to_pylist()
    }


def scores_table(scores: Scores) -> pa.Table:
    """One row per lane, case and figure that is defined."""
    parts = [_lane_table(lane, figures) for lane, figures in scores.lanes.items()]
    empty = pa.table({**{name: pa.array([], _TEXT) for name in _FIGURE_KEY}, "value": pa.array([], pa.float64())})
    return pa.concat_tables([empty, *parts])


def _lane_table(lane: str, scores: LaneScores) -> pa.Table:
    rows, columns = np.nonzero(scores.defined)
    return pa.table(
        {
            "lane": pa.array([lane], _TEXT).take(np.zeros(len(rows), dtype=int)),
            "case": pa.array(scores.cases, _TEXT).take(rows),
            "metric": pa.array([str(figure) for figure in scores.figures], _TEXT).take(columns),
            "value": pa.array(scores.values[rows, columns], pa.float64()),
        }
    )


def differing_scores(path: Path, scores: Scores, limit: int = 20) -> list[Mapping[str, str | float | None]]:
    """The first figures of scores.parquet that are not these: lane, case, metric, `written` and `anew`, None for absent."""
    anew = scores_table(scores).rename_columns([*_FIGURE_KEY, "anew"])
    written = pq.read_table(path).rename_columns({"value": "written"})
    written = written.select([*_FIGURE_KEY, "written"]).cast(anew.schema.remove(3).append(pa.field("written", pa.float64())))
    both = written.join(anew, keys=list(_FIGURE_KEY), join_type="full outer")
    close = pc.less_equal(pc.abs(pc.subtract(both["written"], both["anew"])), _ROUNDING)
    no_number = pc.and_(pc.is_nan(both["written"]), pc.is_nan(both["anew"]))
    same = pc.or_(pc.or_(close, pc.equal(both["written"], both["anew"])), no_number)
    apart = pc.invert(pc.fill_null(same, False))
    rows: list[Mapping[str, str | float | None]]
    rows = both.filter(apart).sort_by([(name, "ascending") for name in _FIGURE_KEY]).slice(0, limit).to_pylist()
    return rows


def cards_table(cards: Cards) -> pa.Table:
    """Id and hash of every card."""
    return pa.table({"id": pa.array(list(cards)), "hash": pa.array([card.hash for card in cards.values()])})


def read_cards(path: Path) -> dict[str, str]:
    """The hash of every card that `cards_table` was made of, by id."""
    table = pq.read_table(path, columns=["id", "hash"])
    return dict(zip(table["id"].to_pylist(), table["hash"].to_pylist(), strict=True))
