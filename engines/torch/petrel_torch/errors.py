"""Errors that the worker turns into petrel's own. Any other exception ends the group."""


class InvalidInput(Exception):
    """The caller can mend it; the state is unchanged."""

    kind = "invalid_input"
