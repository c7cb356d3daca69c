"""The tables of suite.toml that say what is measured: cards, chunks, vectors, index, retrieval, production."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from string import Formatter
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from kbgate.tasks.characters import is_blank
from kbgate.tasks.errors import did_you_mean

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]

EVERYTHING = ("**",)
"""The globs of [kb] include that choose every file."""

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


_STORE_KEEPS = ("_", "chroma:", "$", "#")
"""How names of fields begin that the store, or we in it, have use for."""


def is_storable(name: str) -> bool:
    """Whether the store takes a metadata field of this name."""
    return not is_blank(name) and not name.startswith(_STORE_KEEPS)


class Section(BaseModel):
    """A table of suite.toml: no unknown keys, no type guessing, never changed after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True)


def _is_glob(glob: str) -> str:
    parts = glob.removesuffix("/").split("/")
    if "\\" in glob or not all(parts) or {".", ".."} & set(parts):
        raise ValueError("a glob is a path from the folder, its parts apart by one '/', without '.', '..' or a backslash")
    if any("**" in part and part != "**" for part in parts):
        raise ValueError("'**' stands for whole folders: it stands alone between two '/'")
    return glob


Glob = Annotated[str, AfterValidator(_is_glob)]
"""Files of a folder, as [kb] names them."""


FieldType = Literal["date", "number", "boolean", "list"]
"""What a text of a metadata key can be declared to be."""


class Kb(Section):
    """[kb]: where the cards are."""

    path: str = "cards.jsonl"
    """File or folder of the cards, relative to the suite."""
    on_bad_card: Literal["refuse", "reject"] = "refuse"
    """refuse: a bad card ends the run; reject: it is counted and the run goes on, which blocks beyond rejected_share."""
    rejected_share: Share = 0.0
    """The most cards that may be rejected, of all; one that a gold or an accepted top k needed blocks whatever the share."""
    filterable: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Metadata keys that filters and access rules may use."""
    types: Mapping[str, FieldType] = {}
    """What a filterable key holds where its file has text (CSV, front matter): 2024, true, 2026-05-31, or a list (a; b)."""
    include: Annotated[tuple[Glob, ...], Field(strict=False, min_length=1)] = EVERYTHING
    """Of a folder: globs from it of the files to read. A glob that names a folder means all that is in it."""
    exclude: Annotated[tuple[Glob, ...], Field(strict=False)] = ()
    """Of a folder: globs of files not to read; hidden files, links, node_modules and virtual environments never are."""

    @model_validator(mode="after")
    def _a_share_is_of_what_is_rejected(self) -> Kb:
        if self.rejected_share and self.on_bad_card == "refuse":
            raise ValueError('rejected_share: nothing is rejected where on_bad_card = "refuse"; set on_bad_card = "reject"')
        return self

    @model_validator(mode="after")
    def _types_are_of_filterable_keys(self) -> Kb:
        unknown = [name for name in self.types if name not in self.filterable]
        if unknown:
            raise ValueError(f"types.{unknown[0]}: is not in filterable; {did_you_mean(unknown[0], self.filterable)}")
        return self


class Chunking(Section):
    """[chunking]: how cards are cut."""

    method: str = "recursive"
    """A registered chunking method."""
    size: Annotated[int, Field(ge=16)] = 384
    """Characters of a chunk, at most."""
    overlap: Annotated[int, Field(ge=0)] = 64
    """Characters a chunk repeats of the one before, at most; no more than half of size."""

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> Chunking:
        if self.overlap * 2 > self.size:
            raise ValueError(f"overlap = {self.overlap} is more than half of size = {self.size}")
        return self


class Embedding(Section):
    """[embedding]: the model and the text it reads."""

    model: str = DEFAULT_MODEL
    """A folder, or a model's name; weights in .safetensors only."""
    endpoint: str = ""
    """Reserved: an embeddings API instead of a model."""
    text: str = "{title}\n{description}\n{chunk}"
    """What is embedded; title and description stand in a card's first chunk alone, a line without any part is dropped."""
    query_prefix: str = ""
    """Put before every question; some models need it."""
    passage_prefix: str = ""
    """Put before every chunk; some models need it."""
    batch: Count = 32
    """Texts embedded at once; moves no rank."""

    @field_validator("text")
    @classmethod
    def _names_are_known(cls, text: str) -> str:
        parts = list(Formatter().parse(text))
        if any(spec or conversion for _, _, spec, conversion in parts) or not {
            name for _, name, _, _ in parts if name is not None
        } <= {"title", "description", "chunk"}:
            raise ValueError("only {title}, {description} and {chunk} may stand in braces")
        if "{chunk}" not in text:
            raise ValueError("{chunk} is missing: nothing of the card would be embedded")
        return text


class IndexSettings(Section):
    """[index]: Chroma's HNSW parameters, and what finds words."""

    space: Literal["cosine"] = "cosine"
    """How vectors are compared."""
    max_neighbors: Count = 48
    """Edges of a node of the graph."""
    ef_construction: Count = 400
    """Candidates looked at when a row is added."""
    ef_search: Count | Literal["auto"] = "auto"
    """Candidates looked at when a question is asked; auto: every row up to 10,000, else 400."""
    analyser: Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*)?$")] = ""
    """What finds the words of a text, instead of kbgate's own rules: module:function, called with text and language."""


class Retrieval(Section):
    """[retrieval]: the method under examination."""

    method: str = "hybrid"
    """A registered retrieval method."""
    candidates: Count = 100
    """Rows per lane, a fixed depth: it changes rankings."""
    rrf_k: Count = 60
    """The constant of reciprocal rank fusion."""
    timeout_s: Annotated[float, Field(gt=0)] = 10
    """Seconds after which a question has failed."""
    concurrency: Count = 4
    """Reserved: questions asked at once."""
    min_similarity: float | None = None
    """Cosine below which nothing is answered."""
    rerank: dict[str, JsonValue] | None = None
    """Reserved: a model that orders the candidates anew."""
    python: str | None = None
    """Reserved for method external: package.module:function."""
    http: str | None = None
    """Reserved for method external: a URL."""
    chroma: str | None = None
    """Reserved for method external: a Chroma server."""
    collection: str | None = None
    """Reserved for method external: a collection of it."""
    run_file: str | None = None
    """Reserved for method external: rankings in a file."""


def server_mistake(url: str) -> str:
    """What keeps a URL from being that of a Chroma server, or ""; the URL itself is not told, for it may hold a secret."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        known = False
    if not known:
        return "is not a URL like http://chroma:8000"
    if "@" in parts.netloc:
        return "holds credentials, which would stand in logs and reports; give http://host:port, and the secret to a proxy"
    if parts.path not in ("", "/") or url.rstrip("/") != f"{parts.scheme}://{parts.netloc}":
        return "is more than scheme, host and port; leave out path, query and fragment"
    return ""


def _is_server(url: str) -> str:
    if url and (mistake := server_mistake(url)):
        raise ValueError(mistake)
    return url


class Production(Section):
    """[production]: the Chroma that serves, and how long a verdict may open its door."""

    path: str = ""
    """A folder, relative to the suite; empty: production/<suite> in kbgate's home."""
    url: Annotated[str, AfterValidator(_is_server)] = ""
    """A Chroma server instead of a folder: scheme, host and port, no credentials."""
    collection: str = ""
    """The name readers resolve on a server; empty: the suite's name."""
    method: str = ""
    """What production ranks with; empty, or the same as [retrieval] method."""
    keep: Count = 3
    """Earlier builds that are kept to return to."""
    max_age: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3}[mhd]$")] = "24h"
    """How old a verdict may be that opens the door: a number of m, h or d."""

    @model_validator(mode="after")
    def _one_place(self) -> Production:
        if self.path and self.url:
            raise ValueError("path and url are two places; give one")
        return self

    @property
    def max_age_delta(self) -> dt.timedelta:
        """`max_age` as a length of time."""
        unit = {"m": "minutes", "h": "hours", "d": "days"}[self.max_age[-1]]
        return dt.timedelta(**{unit: int(self.max_age[:-1])})
