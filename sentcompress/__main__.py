"""The entry point of the command `sentcompress` and of `python -m sentcompress`."""

from __future__ import annotations

import os
import sys

from sentcompress import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line. Signal handlers are installed before its modules, which take a while to load."""
    signals.install()
    if "--offline" in sys.argv:
        # Not only in the command line: a plugin that it loads may import the hub's library, which then reads this.
        os.environ["HF_HUB_OFFLINE"] = "1"
    from sentcompress.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
