"""Questions to the Hugging Face hub, which do not wait forever, and the errors that mean that it cannot be reached."""

from __future__ import annotations

import sys
from typing import Any, Literal

# Seconds to wait for an answer of the hub, as long as its library waits at most when it fetches a file.
TIMEOUT = 60.0
# The hint for what the hub gives only to those who agreed to its terms.
GATED = "accept its terms there and set HF_TOKEN"


def ask_hub(kind: Literal["model", "dataset"], name: str, revision: str | None) -> Any:
    """The hub's description of a model or data set; its `sha` is the commit of the revision.

    Raises:
        errors of `huggingface_hub`, or one of `network_errors`, also if there is no answer in TIMEOUT seconds, or in
        those of the environment variable HF_HUB_ETAG_TIMEOUT.
    """
    from huggingface_hub import HfApi, constants

    asked = constants.HF_HUB_ETAG_TIMEOUT
    timeout = TIMEOUT if asked == constants.DEFAULT_ETAG_TIMEOUT else asked  # the library ignores the default, too
    # Without a timeout, the library waits forever.
    return HfApi().repo_info(name, repo_type=kind, revision=revision, timeout=timeout)


def limit_waiting() -> None:
    """Let the hub's library wait at most TIMEOUT seconds for an answer where it would wait forever.

    That is when it lists the files of a data set.
    """
    from huggingface_hub import get_session

    session = get_session()
    hooks = session.event_hooks
    if _set_timeout not in hooks["request"]:
        session.event_hooks = {**hooks, "request": [*hooks["request"], _set_timeout]}


def _set_timeout(request: Any) -> None:
    seconds = request.extensions["timeout"]
    if not any(seconds.values()):
        request.extensions["timeout"] = dict.fromkeys(seconds, TIMEOUT)


def network_errors() -> tuple[type[Exception], ...]:
    """The errors that are raised if the hub cannot be reached; some of the HTTP library's errors are not OSErrors."""
    libraries = (sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules)
    return (OSError, *(library.HTTPError for library in libraries))


def answer_of(error: BaseException) -> str:
    """What the hub answered, if an error is about that: `503 Service Unavailable`; otherwise empty.

    The library looks for the model in its cache then, and its error names the answer only as its cause.
    """
    for one in (error, error.__cause__):
        response = getattr(one, "response", None)
        if response is not None:
            return f"{response.status_code} {getattr(response, 'reason_phrase', '')}".strip()
    return ""
