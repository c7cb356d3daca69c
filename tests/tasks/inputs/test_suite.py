from __future__ import annotations

import re
from pathlib import Path

import pytest

from kbgate.tasks.errors import InputError
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.settings import Suite


def mistakes(folder: Path, toml: str) -> str:
    (folder / "suite.toml").write_text(toml)
    with pytest.raises(InputError) as caught:
        load_suite(folder)
    return str(caught.value)


def test_the_defaults_are_the_designs(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text('name = "faq"')
    suite = load_suite(tmp_path)
    assert (suite.top_k, suite.cuts, suite.fast, suite.pass_mark) == (10, (1, 3, 5, 10), 50, 0.9)
    assert (suite.chunking.size, suite.chunking.overlap) == (384, 64)
    assert (suite.index.max_neighbors, suite.index.ef_construction, suite.index.ef_search) == (48, 400, "auto")
    assert (suite.retrieval.method, suite.retrieval.candidates, suite.retrieval.rrf_k) == ("hybrid", 100, 60)
    assert suite.gates["newly_failing"].ceiling == 0


def test_every_mistake_at_once_at_its_path(tmp_path: Path) -> None:
    said = mistakes(
        tmp_path,
        """name = "Not A Slug"
top_k = "ten"
treshold = 1
[retrieval]
canditates = 10
[gates]
contract = {}
[[allow]]
case = "x"
""",
    )
    assert "name: String should match pattern" in said
    assert "top_k: Input should be a valid integer (found 'ten')" in said
    assert "unknown key 'treshold'" in said
    assert "unknown key 'retrieval.canditates'; did you mean 'candidates'?" in said
    assert "gates.contract: needs a tolerance, a floor or a ceiling" in said
    assert "'allow.0.until' is missing" in said


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('retrieval = {method = "hybird"}', "retrieval.method: unknown 'hybird'; did you mean 'hybrid'?"),
        ('chunking = {method = "smart"}', "chunking.method: unknown 'smart'; known: recursive, whole"),
        ("gates = {ndgc = {floor = 0.1}}", "gates.ndgc: unknown 'ndgc'; did you mean 'ndcg'?"),
        ('gates = {"ndcg@7" = {floor = 0.1}}', "gates.ndcg@7: 7 is none of the computed cut-offs [1, 3, 5, 10]"),
        ('gates = {"leakage@5" = {ceiling = 0}}', "leakage has no cut-off"),
        ("gates = {newly_failing = {tolerance = 0.1}}", "gates.newly_failing: takes a ceiling"),
        ("chunking = {size = 100, overlap = 80}", "overlap = 80 is more than half of size = 100"),
        ("retrieval = {candidates = 5}", "retrieval.candidates = 5 is below the largest k, 10"),
        ('embedding = {text = "{title.__class__} {chunk}"}', "may stand in braces"),
        ('embedding = {text = "{title}"}', "{chunk} is missing"),
        ("gates = {contract = {floor = nan}}", "finite number"),
        ("gates = {newly_failing = {ceiling = inf}}", "finite number"),
        ('gates = {"newly_failing@5" = {ceiling = 0}}', "gates.newly_failing@5: unknown"),
        ("index = {ef_search = 100000000000000000000}", "less than or equal to"),
        ('kb = {filterable = ["chroma:document"]}', "a name the store keeps for itself"),
        ('production = {path = "a", url = "http://b"}', "path and url are two places"),
        ('production = {method = "dense"}', "the exam must rank as production does"),
        ('production = {max_age = "soon"}', "should match pattern"),
        ('folder = "/"', "unknown key 'folder'"),
        ('retrieval = {method = "bm25", min_similarity = 0.3}', "bm25 has no similarity"),
        ("gates = {stability = {tolerance = 0.1}}", "no baseline holds stability, so it has no tolerance"),
        ("gates = {redundancy = {tolerance = 0.1}}", "gates.redundancy: more redundancy is neither better nor worse"),
        ('gates = {"redundancy@3" = {tolerance = 0.1}}', "so it has no tolerance; give a floor or a ceiling"),
        ('slice = [{by = "kind", metric = "redundancy", tolerance = 0.1}]', "slice.0.metric: more redundancy is neither"),
        ('gates = {contract = {floor = 0.1, rule = "significant"}}', "needs a tolerance to judge"),
        ('slice = [{by = "kind", metric = "contrct", tolerance = 0.1}]', "did you mean 'contract'?"),
        ('allow = [{case = "a", check = "leakage", reason = "c", until = 2026-01-01}]', "allow.0.check: "),
        ('allow = [{case = "a", check = "canaries", reason = "c"}]', "'allow.0.until' is missing"),
        ("acceptance = {quality = 1.5}", "acceptance.quality: "),
        ("top_k = true", "valid integer (found True)"),
        ('name = "x"\nname = "y"', "is not valid TOML"),
    ],
)
def test_one_mistake(tmp_path: Path, toml: str, said: str) -> None:
    assert said in mistakes(tmp_path, f'name = "x"\n{toml}')


@pytest.mark.parametrize(
    "toml",
    [
        'unit = "chunk"',
        'embedding = {endpoint = "http://127.0.0.1"}',
        'retrieval = {method = "external"}',
        'retrieval = {rerank = {model = "x"}}',
        'engine = {runner = "dask"}',
    ],
)
def test_what_is_reserved_is_refused_never_ignored(tmp_path: Path, toml: str) -> None:
    assert "not available yet" in mistakes(tmp_path, f'name = "x"\n{toml}')


def test_a_folder_that_is_no_suite(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither suite.toml nor a BEIR"):
        load_suite(tmp_path)
    with pytest.raises(InputError, match="is no folder"):
        load_suite(tmp_path / "nowhere")


def test_a_suite_never_changes_after_reading(tmp_path: Path) -> None:
    suite = Suite(folder=tmp_path, name="x")
    with pytest.raises(ValueError, match="frozen"):
        suite.top_k = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("folder", "name"),
    [("SciFact", "scifact"), ("nq dev_2", "nq-dev-2"), ("知识库", "beir-9a087829"), ("справка", ""), ("Übung", ""), ("-", "")],
)
def test_a_name_made_of_a_folders_name_is_its_own(folder: str, name: str, tmp_path: Path) -> None:
    """What a name cannot have is in its hash: two folders of Chinese or Russian names are not one suite 'beir'."""
    (tmp_path / folder).mkdir()
    for file in ("corpus.jsonl", "queries.jsonl"):
        (tmp_path / folder / file).touch()
    made = load_suite(tmp_path / folder).name
    assert made == name or (not name and re.fullmatch(r"[a-z0-9-]*-[0-9a-f]{8}", made)), made


HIDDEN = "sk-do-not-print"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"http://user:{HIDDEN}@chroma:8000", "holds credentials"),
        (f"https://{HIDDEN}@chroma", "holds credentials"),
        (f"http://chroma:8000/{HIDDEN}", "is more than scheme, host and port"),
        (f"http://chroma:8000?token={HIDDEN}", "is more than scheme, host and port"),
        (f"http://chroma:8000/#{HIDDEN}", "is more than scheme, host and port"),
        ("http://chroma:8000?", "is more than scheme, host and port"),
        (f"ftp://user:{HIDDEN}@chroma", "is not a URL like"),
        (f"user:{HIDDEN}@chroma:8000", "is not a URL like"),
        (f"http://chroma:{HIDDEN}", "is not a URL like"),
        (f"http://[{HIDDEN}", "is not a URL like"),
        ("http://", "is not a URL like"),
    ],
)
def test_the_url_of_production_is_a_server_and_nothing_else(tmp_path: Path, url: str, said: str) -> None:
    told = mistakes(tmp_path, f'name = "x"\nproduction = {{url = "{url}"}}')
    assert f"suite.toml: production.url: {said}" in told
    assert HIDDEN not in told


@pytest.mark.parametrize(
    "url", ["http://chroma", "http://chroma:8000", "https://chroma.internal/", "http://127.0.0.1:8000", "http://[::1]:8000"]
)
def test_a_server_is_a_server(tmp_path: Path, url: str) -> None:
    (tmp_path / "suite.toml").write_text(f'name = "x"\nproduction = {{url = "{url}"}}')
    assert load_suite(tmp_path).production.url == url


@pytest.mark.parametrize(
    "toml",
    [
        'production = {{url = ["http://user:{}@chroma"]}}',
        'production = {{url = "http://user:{}@chroma", path = "x"}}',
        'retrieval = {{chroma = ["http://user:{}@chroma"]}}',
        'retrieval = {{method = "external", http = "http://user:{}@chroma"}}',
        'embedding = {{endpoint = "https://{}@api.example/v1"}}',
        'production = {{server = "http://user:{}@chroma"}}',
    ],
)
def test_no_mistake_tells_a_secret_that_a_url_holds(tmp_path: Path, toml: str) -> None:
    assert HIDDEN not in mistakes(tmp_path, 'name = "x"\n' + toml.format(HIDDEN))


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("x = " + "[" * 100_000, "nested too deeply"), ("x = " + "[" * 200 + "]" * 200, "nested too deeply"),
        ("x = " + "{a = " * 20_000, "nested too deeply"), ("a." * 100_000 + "b = 1", "nested too deeply"),
        ("[" + '"a" . ' * 100_000 + "b]", "nested too deeply"), ("top_k = " + "9" * 5_000, "is not valid TOML"),
        ("as_of = 2026-02-30", "is not valid TOML"), ("as_of = 2026-05-31T25:61:00", "is not valid TOML"),
        ("as_of = 12:00:00", "as_of"), ('as_of = "soon"', "as_of"), ("pass_mark = nan", "pass_mark"),
        ("pass_mark = 1e999", "pass_mark"),
    ],
    ids=lambda text: text[:24],
)  # fmt: skip
def test_a_file_that_no_parser_should_follow_is_bad_input(tmp_path: Path, toml: str, said: str) -> None:
    assert said in mistakes(tmp_path, f'{toml}\nname = "faq"\n')


def test_a_reason_may_have_many_full_stops(tmp_path: Path) -> None:
    reason = "e.g. " * 60 + "a.b.c.d"
    allow = f'[[allow]]\ncase = "c"\ncheck = "newly_failing"\nuntil = 2099-01-01\nreason = "{reason}"\n'
    (tmp_path / "suite.toml").write_text(f'name = "faq"\n{allow}')
    assert load_suite(tmp_path).allowances[0].reason == reason
