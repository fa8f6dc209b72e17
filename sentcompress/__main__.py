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
    _open_closed_streams()
    signals.install()
    if "--offline" in sys.argv:
        # Not only in the command line: a plugin that it loads may import the hub's library, which then reads this.
        os.environ["HF_HUB_OFFLINE"] = "1"
    from sentcompress.cli.main import main as command_line

    command_line()


def _open_closed_streams() -> None:
    """Open the null device in place of standard streams that were closed by whoever started this process.

    Otherwise the next file that is opened gets the number of one of them, and messages are written into it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


if __name__ == "__main__":
    main()
