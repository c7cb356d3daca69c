"""Faults of the machinery: another model, a lost prefix, other chunks, a starved index."""

from __future__ import annotations

from random import Random

from kbgate.tasks.studies.faults import Copy, Spoiled, fault

_PREFIXES = (
    "search_document: ",
    "clustering: ",
    "title: none | text: ",
    "Represent this for retrieval: ",
    "zzz ",
    "SYSTEM NOTE. ",
)

_SIZES = tuple(range(80, 180, 10))


@fault("another model", causes=("settings",))
def another_model(copy: Copy, draw: Random) -> Spoiled | None:
    """The index is built with another model."""
    if not copy.models:
        return None
    name = draw.choice(sorted(copy.models))
    copy.section("embedding")["model"] = copy.models[name]
    return Spoiled(name, ("embedding.model",))


@fault("prefix lost", causes=("settings",))
def prefix_lost(copy: Copy, draw: Random) -> Spoiled | None:
    """Questions or passages are embedded with another prefix than they were."""
    section, side = copy.section("embedding"), draw.choice(("query_prefix", "passage_prefix"))
    section[side] = "" if section.get(side) else draw.choice(_PREFIXES) * 2
    return Spoiled(side, (f"embedding.{side}",))


@fault("badly split", causes=("chunk_split",))
def badly_split(copy: Copy, draw: Random) -> Spoiled | None:
    """Cards are cut into pieces that are too small to say anything."""
    size = draw.choice(_SIZES)
    copy.section("chunking").update({"method": "recursive", "size": size, "overlap": 0})
    return Spoiled(f"size {size}")


@fault("hostile index", causes=("lost_by_index",))
def hostile_index(copy: Copy, draw: Random) -> Spoiled | None:
    """The approximate index is built with parameters that starve it."""
    few = draw.randint(2, 4)
    copy.section("index").update(
        {"max_neighbors": few, "ef_construction": draw.randint(1, 4), "ef_search": draw.randint(1, 10)}
    )
    return Spoiled(f"max_neighbors {few}", ())
