"""Arguments that several commands share, and the sentence about exit codes that all of them print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXIT_CODES = """Exit codes: 0 PASS or WARN; 1 BLOCK, or a refused update or promotion; 2 bad input or usage; 3 INCONCLUSIVE;
4 ERROR: could not measure. Under make every failure is 2: only kbgate carries codes."""

SuiteFolder = Annotated[Path, typer.Argument(metavar="SUITE", help="A folder with suite.toml, or in BEIR form.")]
ReEmbed = Annotated[
    bool, typer.Option("--re-embed", help="Hold every cached vector against the model; otherwise a sample, another each run.")
]
Reason = Annotated[str, typer.Option("--reason", help="Why this is the new baseline; it stays in the file.")]
