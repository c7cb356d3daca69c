"""The vector cache: what was embedded once is never embedded again.

One folder per model and settings, holding immutable Arrow files of (key, vector). A writer adds a file under a name of its
own and renames it into place, so that any number of runs may write at once; readers map the files into memory. A file that
cannot be read is as if absent: its texts are embedded again.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from kbgate.tasks.records import replacing
from kbgate.tasks.tables import Vectors

FORMAT = 1
_MERGE_ABOVE = 24
"""Files in one folder beyond which a writer joins them into one."""


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
            rows = dict(row for path in files for row in _rows(path, None))
            _write(self.folder, list(rows), np.stack(list(rows.values())))
            for path in files:
                path.unlink(missing_ok=True)


def _write(folder: Path, keys: Sequence[bytes], vectors: Vectors) -> None:
    import pyarrow as pa

    flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
    table = pa.table(
        {
            "key": pa.array(keys, pa.binary(32)),
            "vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
        }
    )
    with (
        replacing(folder / f"{uuid.uuid4().hex}.arrow") as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)


def _rows(path: Path, wanted: set[bytes] | None) -> Iterable[tuple[bytes, Vectors]]:
    """The (key, vector) pairs of one file, all of them or the wanted ones."""
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
            keys = table.column("key").to_pylist()
            vectors = table.column("vector").combine_chunks()
            size = vectors.type.list_size
            matrix = vectors.flatten().to_numpy().reshape(-1, size)
            places = [i for i, key in enumerate(keys) if wanted is None or key in wanted]
            chosen = matrix[places]  # a copy: the file may be unmapped
    except (OSError, pa.ArrowException, KeyError, ValueError, AttributeError):
        return []
    unit = np.abs(np.linalg.norm(chosen, axis=1) - 1) < 1e-3
    return [(keys[place], vector) for place, vector, good in zip(places, chosen, unit, strict=True) if good]
