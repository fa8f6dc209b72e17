"""The command `sentcompress`: its subcommands, and the only place where errors become exit codes."""

from __future__ import annotations

import ctypes
import io
import os
import platform
import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import typer
from typer.exceptions import Abort, TyperException

from sentcompress import __version__
from sentcompress.cli.failures import explain
from sentcompress.cli.line import PlainCommand, ToldError, function_of, params_of
from sentcompress.cli.terminal import print_json, say, say_page, tell, warn
from sentcompress.commands import all_commands
from sentcompress.commands.spelling import spelled, spelled_hint
from sentcompress.errors import SentcompressError, SentcompressWarning, did_you_mean
from sentcompress.exit_codes import DONE, FAILED, NO_READER, USAGE
from sentcompress.models.threads import MOST_WORKERS
from sentcompress.ranks.launch import by_rank
from sentcompress.signals import ENDS, GO_ON, SIGINT, StoppedError, Working, ends_with

app = typer.Typer(
    name="sentcompress",
    no_args_is_help=True,
    add_completion=False,
    # Plain help: importing rich would make `--help` slow.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"sentcompress {__version__}")
        raise typer.Exit


@app.callback()
def sentcompress(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Never contact a model hub; can appear anywhere.")] = False,
) -> None:
    """Turn a large sentence-embedding model into a small, fast one with short vectors, and measure what was lost.

    Each command is a step; results go to a work directory (--work, or SENTCOMPRESS_WORK; "work" by default). A step
    reads what earlier ones wrote, resumes where it was interrupted, and is skipped if its result is up to date.
    """


with warnings.catch_warnings(record=True) as _of_plugins:
    warnings.simplefilter("always", SentcompressWarning)
    COMMANDS = all_commands()
for _name, _command in COMMANDS.items():
    app.command(_name, cls=PlainCommand)(function_of(_command))


# oneDNN caches a compiled kernel for every shape. Our batches have hundreds of shapes that rarely recur, so by default
# the caches grow by gigabytes without benefit (docs/decisions/0005-memory.md).
KERNEL_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
# Kernels of one training step, and of the batch of one thread while texts are encoded.
STEP_KERNELS, BATCH_KERNELS = 16, 8


def kernel_cache_entries(threads: int) -> int:
    """Entries of a cache of compiled kernels that up to `threads` batches use at a time."""
    return max(STEP_KERNELS, BATCH_KERNELS * min(threads, MOST_WORKERS))


# mallopt's parameters (malloc.h) and their values: blocks below 1 GiB are allocated on the heap, which keeps up to
# 2 GiB of free memory at its end.
KEPT_MEMORY = {"M_MMAP_THRESHOLD": (-3, 2**30), "M_TRIM_THRESHOLD": (-1, 2**31 - 1)}


def keep_freed_memory() -> bool:
    """Make glibc keep freed large blocks for the next batch; returns whether this worked.

    By default glibc returns the memory of every large tensor to the kernel, which zeroes each page before reuse,
    thousands of pages per batch (docs/decisions/0005-memory.md). Does nothing with another C library, or if the
    environment configures malloc.
    """
    if platform.libc_ver()[0] != "glibc" or any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return False
    library = ctypes.CDLL(None)
    return all(library.mallopt(number, value) for number, value in KEPT_MEMORY.values())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with one of `exit_codes`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "--offline" in given:
        # huggingface_hub reads its variables on import, so this comes first.
        os.environ["HF_HUB_OFFLINE"] = "1"
        given = [argument for argument in given if argument != "--offline"]
    for variable in KERNEL_CACHES:
        os.environ.setdefault(variable, str(kernel_cache_entries(os.cpu_count() or 1)))  # read when torch is loaded
    keep_freed_memory()
    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal or pipe that is not UTF-8 gets escapes instead of an error.
            stream.reconfigure(errors="backslashreplace")
    code = _run(given)
    ends_with(code)
    sys.exit(code)


@dataclass(frozen=True)
class Failure:
    """The message, hint and exit code of a failed command."""

    message: str
    hint: str | None
    code: int


_show_other_warning = warnings.showwarning


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Our own warnings as a line each, without the place in the code."""
    if issubclass(category, SentcompressWarning):
        warn(str(message))
    else:
        _show_other_warning(message, category, *place, **more)


def _run(given: list[str]) -> int:
    as_json = "--json" in given
    for ignored in _of_plugins:
        warn(str(ignored.message))
    try:
        with Working():
            # Not `app(given)`: typer would silently turn an interrupt or a closed pipe into its own exit codes.
            command = typer.main.get_command(app)
            with command.make_context("sentcompress", list(given)) as context:
                command.invoke(context)
            sys.stdout.flush()  # here, where a full disk or a closed pipe can still be reported
        return DONE
    except typer.Exit as ended:
        return ended.exit_code
    except ToldError as told:
        return _fail(_foreseen(told.error, given))
    except SentcompressError as error:
        if error.__cause__ is not None and os.environ.get("SENTCOMPRESS_DEBUG"):
            traceback.print_exc()  # the library's error, which was reported as an error of a file
        return _fail(_foreseen(error, given), as_json)
    except TyperException as error:
        return _usage(error, given)
    except StoppedError as stop:
        return _fail(_ended(stop), as_json)
    except (KeyboardInterrupt, Abort):
        return _fail(_ended(StoppedError(SIGINT)), as_json)
    except BrokenPipeError:
        # The reader of our output is gone (`| head`), so there is nowhere to report it.
        _drop_output()
        return NO_READER
    except Exception as error:  # the boundary: two lines for the user, a traceback on request
        if os.environ.get("SENTCOMPRESS_DEBUG"):
            traceback.print_exc()
        return _fail(_unforeseen(error, given), as_json)


def _foreseen(error: SentcompressError, given: list[str]) -> Failure:
    """One of our own errors, its options spelled as on the command line."""
    params = params_of(given, COMMANDS)
    return Failure(spelled(error.message, params), spelled_hint(error.alternatives, params), error.exit_code)


def _unforeseen(error: Exception, given: list[str]) -> Failure:
    """An error that no command handles."""
    message, hint = explain(error)
    alternatives = SentcompressError(message, hint).alternatives
    return Failure(message, spelled_hint(alternatives, params_of(given, COMMANDS)), FAILED)


def _usage(error: TyperException, given: list[str]) -> int:
    """Report a usage error in our two-line form; typer's own classes for them are private."""
    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context else " ".join(["sentcompress", *(w for w in given[:1] if w in COMMANDS)])
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if type(error).__name__ == "NoArgsIsHelpError":
        say_page(message, error=True)
        return USAGE
    hint = f"run: {path} --help"
    if hasattr(error, "option_name") and context:
        known = [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]
        message, hint = f"no such option: {error.option_name}", f"{did_you_mean(error.option_name, known)} ({hint})"
        if context.parent is None and (word := next((word for word in given if word in COMMANDS), None)):
            message, hint = f"{error.option_name} is before the command", f"put options after it: {path} {word} ..."
    elif extra := re.fullmatch(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message):
        message = f"{path} takes no more arguments: {extra[1]}"
    elif message.startswith("No such command"):
        word = message.split("'")[1]
        message, hint = f"no such command: {word}", did_you_mean(word, COMMANDS)
    return _fail(Failure(message[:1].lower() + message[1:], hint, USAGE), "--json" in given)


def _ended(stop: StoppedError) -> Failure:
    reason, code = ENDS[stop.number]
    return Failure(reason, stop.hint or GO_ON, code)


def _fail(failure: Failure, as_json: bool = False) -> int:
    """Tell of a failure on standard error; with `as_json`, also as the document that standard output was to get."""
    tell(by_rank(failure.message), failure.hint)
    if as_json:
        try:
            print_json({"error": failure.message, "help": failure.hint, "exit_code": failure.code})
            sys.stdout.flush()
        except OSError:
            _drop_output()  # standard error has it
    return failure.code


def _drop_output() -> None:
    """Discard all further output, because standard output no longer accepts any."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
