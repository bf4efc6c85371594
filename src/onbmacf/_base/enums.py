"""The words for how a row was answered and for what was released. Pure Python: the search needs no pandas for them."""

from enum import StrEnum


class Relaxation(StrEnum):
    """What was given up to find a counterfactual (Algorithm 3 lines 11-14). Each value is also plain text.

    >>> Relaxation.IMMUTABILITY == "immutability"
    True
    """

    NONE = "none"  #: nothing: the projected centre lies in its ball and has its label
    PROJECTION = "projection"  #: the projected centre may lie outside its ball
    IMMUTABILITY = "immutability"  #: immutable features may change, and every rule holds
    RULES = "rules"  #: at least one of the user's rules was released, on request
    BOTH = "immutability and rules"  #: an immutable feature changes, and at least one rule was released, on request


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


class CertificateKind(StrEnum):
    """What was proven about an answer. Each value is also plain text.

    >>> [str(kind) for kind in CertificateKind]
    ['nearest', 'within', 'none_exists', 'none_found', 'unproven']
    """

    NEAREST = "nearest"  #: no allowed change with a wanted label is nearer than the first counterfactual
    WITHIN = "within"  #: the first counterfactual is at most `gap` farther than the nearest
    NONE_EXISTS = "none_exists"  #: no allowed change has a wanted label
    NONE_FOUND = "none_found"  #: none was found, and it is not proven that none exists
    UNPROVEN = "unproven"  #: a counterfactual was found, and nothing is proven about its distance
