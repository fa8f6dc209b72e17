"""Interruptions at a certain call of a function, as by Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest


@contextmanager
def interrupted(owner: object, name: str, call: int = 1, *, after: bool = False) -> Iterator[None]:
    """The block has to be interrupted at a call of a function of `owner`.

    Args:
        call: number of the call, from 1.
        after: whether the call is made before the interruption.
    """
    with pytest.raises(KeyboardInterrupt), _interrupting(owner, name, call, after=after):
        yield


def interrupts(act: Callable[[], object], owner: object, name: str, call: int) -> bool:
    """Call `act`, and interrupt it at that call of a function, if it gets there; whether it did."""
    try:
        with _interrupting(owner, name, call, after=False):
            act()
    except KeyboardInterrupt:
        return True
    return False


@contextmanager
def _interrupting(owner: object, name: str, call: int, *, after: bool) -> Iterator[None]:
    function, numbers = getattr(owner, name), count(1)

    def replacement(*given: Any, **named: Any) -> Any:
        last = next(numbers) == call
        if last and not after:
            raise KeyboardInterrupt
        made = function(*given, **named)
        if last:
            raise KeyboardInterrupt
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, replacement)
        yield
