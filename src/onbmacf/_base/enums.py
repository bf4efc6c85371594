"""The words for how a row was answered and for what was released. Pure Python: the search needs no pandas for them."""

from enum import StrEnum


class Relaxation(StrEnum):
    """What was given up to find a counterfactual (Algorithm 3 lines 11-14). Each value is also plain text.

    >>> Relaxation.IMMUTABILITY == "immutability"
    True
    """

    NONE = "none"  #: nothing: the projected centre lies in its ball and has its label
    PROJECTION = "projection"  #: the projected centre may lie outside its ball
    IMMUTABILITY = "immutability"  #: immutable features may change
    RULES = "rules"  #: at least one of the user's rules was released, on request


class Status(StrEnum):
    """How a row was answered. Each value is also plain text.

    >>> [str(status) for status in Status]
    ['found', 'already', 'none_found', 'infeasible', 'model_error', 'invalid_row']
    """

    FOUND = "found"  #: at least one counterfactual
    ALREADY = "already"  #: the model gives the row a target label as it is; nothing was searched
    NONE_FOUND = "none_found"  #: the search found no counterfactual; the reason says how hard it looked
    INFEASIBLE = "infeasible"  #: none exists: every combination of allowed values was asked about
    MODEL_ERROR = "model_error"  #: the model raised, or answered differently when it was asked again
    INVALID_ROW = "invalid_row"  #: the row cannot be encoded
