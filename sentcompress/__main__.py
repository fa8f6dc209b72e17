"""The entry point of the command `sentcompress` and of `python -m sentcompress`."""

from __future__ import annotations

from sentcompress import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line. Signal handlers are installed before its modules, which take a while to load."""
    signals.install()
    from sentcompress.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
