"""The exit-code wrapper: `kbgate` ends 0 to 4, and Python's own 1 for a crash never reads as BLOCK."""

from __future__ import annotations

import os
import sys
import traceback

from kbgate.flows.endings import Stopped, speak_on, stop_at_signals
from kbgate.tasks.printable import harmless_output, printable


def run(arguments: list[str]) -> int:
    """Run the command line; everything it prints passes the one door of `kbgate.tasks.printable`."""
    with harmless_output():
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    """Run the command line; whatever was not foreseen is exit 4, one sentence, no traceback without --debug."""
    # Set before anything is imported that would call home.
    os.environ["DO_NOT_TRACK"] = "1"
    os.environ["ANONYMIZED_TELEMETRY"] = "False"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
    try:
        from kbgate.flows.cli import command_line

        code = command_line(arguments)
        sys.stdout.flush()
    except Stopped as stopped:
        print(f"kbgate: ERROR: {stopped}", file=sys.stderr)
        return 4
    except BaseException as error:
        if "--debug" in arguments:
            print("\n".join(map(printable, traceback.format_exc().split("\n"))), file=sys.stderr)
        else:
            sentence = str(error).strip().split("\n")[0]
            print(printable(f"kbgate: ERROR: {type(error).__name__}: {sentence} (--debug shows where)"), file=sys.stderr)
        return 4
    return code


def main() -> None:
    """The console script's door."""
    stop_at_signals()
    speak_on()
    code = run(sys.argv[1:])
    sys.stderr.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
