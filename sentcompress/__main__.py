"""Where the command `sentcompress`, and `python -m sentcompress`, begin."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; an interrupt while its modules are still being loaded is told in the same words."""
    try:
        from sentcompress.cli.main import main as command_line
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        sys.exit(130)
    command_line()


if __name__ == "__main__":
    main()
