"""The exit-code wrapper: `kbgate` ends 0 to 4, and Python's own 1 for a crash never reads as BLOCK."""

from __future__ import annotations

import os
import sys
import traceback


def main() -> None:
    """Run the command line; whatever was not foreseen is exit 4, one sentence, no traceback without --debug."""
    # Set before anything is imported that would call home.
    os.environ["DO_NOT_TRACK"] = "1"
    os.environ["ANONYMIZED_TELEMETRY"] = "False"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
    try:
        from flows.cli import command_line

        code = command_line(sys.argv[1:])
    except BaseException as error:
        if "--debug" in sys.argv:
            traceback.print_exc()
        else:
            said = str(error).strip().split("\n")[0]
            print(f"kbgate: ERROR: {type(error).__name__}: {said} (--debug shows where)", file=sys.stderr)
        code = 4
    sys.stdout.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
