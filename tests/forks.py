"""Forks that become a Python program."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn


def become(program: Callable[[], object]) -> NoReturn:
    """Run the program, and end this process as Python would: with its exit code, and the traceback of an error."""
    code = 1
    try:
        program()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        if isinstance(sys.exc_info()[1], Exception):
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
