"""Where the command `sentcompress`, and `python -m sentcompress`, begin."""

from __future__ import annotations

from sentcompress import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line. Signals come first: loading its modules takes longer than a hasty Ctrl-C."""
    signals.install()
    from sentcompress.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
