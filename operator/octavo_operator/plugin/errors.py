"""`PluginError`: what stops a verb, in one sentence that says what to do."""

from octavo_operator.kube_client import ApiError, Forbidden, NotFound, Unavailable


class PluginError(Exception):
    """Printed as it is; exit code 2."""


def sentence_of(error: ApiError) -> str:
    """The API server's refusal for a person at a terminal."""
    match error:
        case NotFound():
            return f"The cluster does not have it: {error}."
        case Forbidden():
            return f"Your user may not do this: {error}."
        case Unavailable():
            return f"The cluster does not answer; check `kubectl cluster-info`: {error}."
        case _:
            return f"The API server refused: {error}."
