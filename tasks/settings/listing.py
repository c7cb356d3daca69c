"""Every key of suite.toml with its default, what is allowed and what it means, read from the models themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue

from kbgate.tasks.settings import Gate, Suite

_NOUNS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true | false"}
_NOT_WRITTEN = ("folder", "given", "floors")
"""Fields of a suite that its file does not say."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of suite.toml."""

    path: str
    default: str
    """As it would be written; "required" where there is none, "-" where it is left out."""
    allowed: str
    meaning: str


def keys_of_suite() -> Iterator[Key]:
    """Every key, in the order of the models; `gates.METRIC` stands for every line of [gates]."""
    for name, field in Suite.model_fields.items():
        if name in _NOT_WRITTEN:
            continue
        path, model = field.alias or name, Gate if name == "gates" else _model_of(field.annotation)
        path = f"[[{path}]]" if model is not None and isinstance(field.default, tuple) else path
        yield from _keys_of(model, "gates.METRIC" if name == "gates" else path) if model else [_key(Suite, path, field)]


def _keys_of(model: type[BaseModel], path: str) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        inner = _model_of(field.annotation)
        yield from _keys_of(inner, f"{path}.{name}") if inner else [_key(model, f"{path}.{name}", field)]


def _model_of(annotation: object) -> type[BaseModel] | None:
    """The table a key holds, alone, as a list or where it may be left out; None for a plain value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = (_model_of(part) for part in get_args(annotation))
    return next((model for model in models if model is not None), None)


def _key(model: type[BaseModel], path: str, field: FieldInfo) -> Key:
    written = model.model_json_schema(by_alias=True)["properties"][path.rpartition(".")[2]]
    return Key(path, _default(field), _allowed(written), (field.description or "").replace("\n", " "))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None:
        return "-"
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return json.dumps(value, ensure_ascii=False, default=str)


def _allowed(schema: JsonSchemaValue) -> str:
    """What may be written, in a few words."""
    if "anyOf" in schema:
        return " or ".join(_allowed(part) for part in schema["anyOf"] if part.get("type") != "null")
    if "enum" in schema or "const" in schema:
        return " | ".join(schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_allowed(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict) and schema["additionalProperties"]:
        return f"table of {_allowed(schema['additionalProperties'])}"
    if schema.get("format") == "date":
        return "date"
    if "pattern" in schema:
        return f"text like {schema['pattern']}"
    return _NOUNS.get(schema.get("type", ""), "table") + _span(schema)


def _span(schema: JsonSchemaValue) -> str:
    """The least and the most a number may be."""
    words = (("minimum", "from"), ("exclusiveMinimum", "above"), ("maximum", "to"))
    return "".join(f" {word} {schema[name]}" for name, word in words if name in schema)
