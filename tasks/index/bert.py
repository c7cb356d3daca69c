"""What a BERT model gives for a few texts, in numpy: from the same weights, without the five seconds that torch takes to load.

It is asked only to confirm. Two ways of computing that agree to a ten-thousandth do so because the vectors are right; where
they do not, the model itself has the last word (`confirmation`): what is not understood here costs time, and nothing else.

Source: Devlin et al., BERT (2019), with the pooling of Sentence-BERT.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from kbgate.tasks.tables import Vectors

_SETTINGS = {"hidden_act": "gelu", "position_embedding_type": "absolute"}
_MODULES = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


class Bert:
    """A model whose every setting is one that is computed here."""

    def __init__(self, folder: Path):
        """`folder`: a sentence-transformers model; raises `ValueError`, `KeyError` or `OSError` where it is of another kind."""
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        config = _read(folder / "config.json")
        strange = [name for name, known in _SETTINGS.items() if config.get(name, known) != known]
        if strange or config["model_type"] != "bert" or config.get("is_decoder"):
            raise ValueError("not a plain BERT encoder")
        self._pooling = _pooling_of(folder)
        self._heads, self._layers = int(str(config["num_attention_heads"])), int(str(config["num_hidden_layers"]))
        self._epsilon = float(str(config["layer_norm_eps"]))
        self._weights: Mapping[str, Vectors] = load_file(folder / "model.safetensors")
        if {array.dtype for name, array in self._weights.items() if not name.endswith("position_ids")} != {np.dtype("float32")}:
            raise ValueError("not of float32")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_longest(folder))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text."""
        ids = [np.array(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts))]
        # The tokens of all texts as one table: a text is what stands between two edges.
        edges = np.cumsum([0, *(len(tokens) for tokens in ids)]).tolist()
        states = self._embedded(ids)
        for layer in range(self._layers):
            states = self._layer(states, edges, f"encoder.layer.{layer}")
        pooled = np.stack([states[a] if self._pooling == "cls" else states[a:b].mean(axis=0) for a, b in pairwise(edges)])
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), np.float32)

    def _embedded(self, ids: Sequence[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> Vectors:
        kinds_of = ("word", "position", "token_type")
        words, places, kinds = (self._weights[f"embeddings.{name}_embeddings.weight"] for name in kinds_of)
        states = np.concatenate([words[tokens] + places[: len(tokens)] + kinds[0] for tokens in ids])
        return self._normed(states, "embeddings.LayerNorm")

    def _layer(self, states: Vectors, edges: Sequence[int], name: str) -> Vectors:
        asked, keys, values = (self._linear(states, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
        seen = np.concatenate([self._attention(asked[a:b], keys[a:b], values[a:b]) for a, b in pairwise(edges)])
        seen = self._linear(seen, f"{name}.attention.output.dense")
        states = self._normed(seen + states, f"{name}.attention.output.LayerNorm")
        inner = self._linear(_gelu(self._linear(states, f"{name}.intermediate.dense")), f"{name}.output.dense")
        return self._normed(inner + states, f"{name}.output.LayerNorm")

    def _attention(self, asked: Vectors, keys: Vectors, values: Vectors) -> Vectors:
        """What the tokens of one text see of each other."""
        count, size = asked.shape
        by_head = [part.reshape(count, self._heads, size // self._heads).transpose(1, 0, 2) for part in (asked, keys, values)]
        scores = by_head[0] @ by_head[1].transpose(0, 2, 1) / np.float32(np.sqrt(size // self._heads))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return np.asarray((shares @ by_head[2]).transpose(1, 0, 2).reshape(count, size), np.float32)

    def _linear(self, states: Vectors, name: str) -> Vectors:
        return np.asarray(states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"], np.float32)

    def _normed(self, states: Vectors, name: str) -> Vectors:
        centred = states - states.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self._epsilon)
        return np.asarray(centred / scale * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"], np.float32)


def _gelu(states: Vectors) -> Vectors:
    from scipy.special import erf

    return np.asarray(states * 0.5 * (1 + erf(states / np.float32(np.sqrt(2)))), np.float32)


def _pooling_of(folder: Path) -> str:
    """Either mean or cls; raises `ValueError` where the model does anything else with its tokens."""
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    if [module["type"].rpartition(".")[2] for module in modules] not in _MODULES or modules[0]["path"]:
        raise ValueError("not of transformer, pooling and normalisation alone")
    settings = _read(folder / modules[1]["path"] / "config.json")
    modes = [name for name, value in settings.items() if name.startswith("pooling_mode") and value is True]
    if "pooling_mode" in settings or len(modes) != 1 or settings.get("include_prompt") is False:
        raise ValueError("not pooled in one known way")
    return _POOLINGS[modes[0]]


def _longest(folder: Path) -> int:
    """Tokens that a text is cut to; raises `ValueError` where texts are changed before they are cut."""
    settings, prompts = _read(folder / "sentence_bert_config.json"), _read(folder / "config_sentence_transformers.json")
    if settings.get("do_lower_case") or prompts.get("default_prompt_name"):
        raise ValueError("texts are changed before they are embedded")
    return int(str(settings["max_seq_length"]))


def _read(path: Path) -> Mapping[str, object]:
    content: Mapping[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return content
