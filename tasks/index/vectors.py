"""The vector cache: what was embedded once is never embedded again.

One folder per model and settings, holding immutable Arrow files of (key, vector). A writer adds a file under a name of its
own and renames it into place, so that any number of runs may write at once; readers map the files into memory. Each file
carries a digest of what it holds and for which model: one that does not fit is removed, told, and its texts are embedded
again. A digest proves that nothing was damaged, not that the model gave these vectors: that is what `confirmation` asks.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from kbgate.tasks.records import replacing
from kbgate.tasks.tables import Vectors

FORMAT = 2
_MERGE_ABOVE = 24
"""Files in one folder beyond which a writer joins them into one."""
_DIGEST = b"kbgate.sha256"
"""Where the digest stands in a file's own metadata."""


def key_of(prefix: str, text: str) -> bytes:
    """The cache key of one text under one model: 32 bytes."""
    return hashlib.sha256(f"{len(prefix)}:{prefix}{text}".encode()).digest()


class VectorCache:
    """Vectors by key, for one model and its settings."""

    def __init__(self, home: Path, model: str):
        """`home`: folder of all caches; `model`: digest of the weights and of every setting that shapes a vector."""
        self.folder = home / f"v{FORMAT}" / model

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The cached vectors among `keys`; what is damaged or no unit vector counts as absent."""
        wanted, cached = set(keys), {}
        for path in sorted(self.folder.glob("*.arrow")):
            if wanted:
                for key, vector in _rows(path, wanted):
                    cached[key] = vector
                    wanted.discard(key)
        lengths = {v.shape for v in cached.values()}
        return cached if len(lengths) <= 1 else {}

    def write(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Add vectors; joins the folder's files when there are many."""
        if not keys:
            return
        _write(self.folder, keys, vectors)
        files = sorted(self.folder.glob("*.arrow"))
        if len(files) > _MERGE_ABOVE:
            size = vectors.shape[1]
            rows = {key: vector for path in files for key, vector in _rows(path, None) if len(vector) == size}
            _write(self.folder, list(rows), np.stack(list(rows.values())))
            for path in files:
                path.unlink(missing_ok=True)


def _digest(folder: Path, keys: Sequence[bytes], vectors: Vectors) -> bytes:
    """What a file holds, and for which model: a file that was moved from another model's folder does not fit."""
    state = hashlib.sha256(f"{folder.name} {vectors.shape[0]} x {vectors.shape[1]}\n".encode())
    state.update(b"".join(keys))
    state.update(np.ascontiguousarray(vectors, dtype="<f4").data)
    return state.hexdigest().encode()


def _write(folder: Path, keys: Sequence[bytes], vectors: Vectors) -> None:
    import pyarrow as pa

    flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
    table = pa.table(
        {
            "key": pa.array(keys, pa.binary(32)),
            "vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
        },
        metadata={_DIGEST: _digest(folder, keys, vectors)},
    )
    with (
        replacing(folder / f"{uuid.uuid4().hex}.arrow") as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)


def _rows(path: Path, wanted: set[bytes] | None) -> Iterable[tuple[bytes, Vectors]]:
    """The (key, vector) pairs of one file, all of them or the wanted ones; a damaged file has none, and goes."""
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
            keys = table.column("key").to_pylist()
            vectors = table.column("vector").combine_chunks()
            matrix = vectors.flatten().to_numpy().reshape(len(keys), vectors.type.list_size)
            if (table.schema.metadata or {}).get(_DIGEST) != _digest(path.parent, keys, matrix):
                raise ValueError("its digest does not fit")
            places = [i for i, key in enumerate(keys) if wanted is None or key in wanted]
            chosen = matrix[places]  # a copy: the file may be unmapped
    except FileNotFoundError:
        return []  # another writer joined it with others
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, AttributeError) as error:
        _tell_of_damage(path, error)
        return []
    unit = np.abs(np.linalg.norm(chosen, axis=1) - 1) < 1e-3
    return [(keys[place], vector) for place, vector, good in zip(places, chosen, unit, strict=True) if good]


def _tell_of_damage(path: Path, error: Exception) -> None:
    """Say which file cannot be used, and remove it where it is what it says that is wrong: it would be told at every run."""
    how = str(error).split("\n")[0]
    print(f"kbgate: {path} of the vector cache is damaged ({how}); its texts are embedded anew", file=sys.stderr)
    if not getattr(error, "errno", None):  # not for want of file handles or rights
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
