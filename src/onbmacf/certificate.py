"""What was proven about an answer, as a frozen value: that it is the nearest, how near it is, or that none exists."""

from dataclasses import dataclass
from math import ceil, floor, inf, isfinite, log10

from onbmacf._base.enums import CertificateKind

__all__ = ["Certificate", "CertificateKind"]

EXACT = 1e-8  # a relative gap below this is rounding error


@dataclass(frozen=True)
class Certificate:
    """What was proven about one row's answer.

    It speaks of all rows that the row may become: the levels, whole numbers and readable values of the fitted ranges,
    rounded outwards (of a rule's range where there is one, and up to the row's own value where that lies outside),
    with every rule kept and every immutable feature as it is.

    Attributes
    ----------
    kind : CertificateKind
        What was proven.
    how : str
        What the proof rests on, in words: "for this forest", "by asking about all 512 allowed changes"; empty where
        nothing is proven.
    bound : float
        No allowed change with a wanted label is nearer than this; infinite where none exists, 0 where nothing is known.
    gap : float
        How much farther the first counterfactual may be than the nearest, as a share of the bound; NaN without one.
    seconds : float
        How long the proof took.
    reason : str
        Why it is not proven; empty otherwise.

    """

    kind: CertificateKind
    how: str = ""
    bound: float = 0.0
    gap: float = float("nan")
    seconds: float = 0.0
    reason: str = ""

    def __repr__(self) -> str:
        return f"<Certificate {self.kind}: {self.sentence()}>"

    @classmethod
    def of(
        cls, distance: float, bound: float, is_over: bool, how: str, seconds: float, reason: str = ""
    ) -> "Certificate":
        """Return the certificate of a row by the distance of its answer (infinite: none) and what was proven of it."""
        if not isfinite(distance):
            kind = CertificateKind.NONE_EXISTS if is_over else CertificateKind.NONE_FOUND
            return cls(kind, how, inf if is_over else bound, seconds=seconds, reason=reason)
        gap = max(0.0, distance / bound - 1.0) if bound > 0 else inf
        if gap <= EXACT:
            return cls(CertificateKind.NEAREST, how, distance, 0.0, seconds)
        kind = CertificateKind.WITHIN if isfinite(gap) else CertificateKind.UNPROVEN
        return cls(kind, how, bound, gap, seconds, reason)

    @property
    def is_proven(self) -> bool:
        """Whether there is nothing left to know: the answer is the nearest, or none exists."""
        return self.kind in (CertificateKind.NEAREST, CertificateKind.NONE_EXISTS)

    def mark(self) -> str:
        """Return what follows the distance in a table: that it is the nearest, how near, or not proven."""
        words = {CertificateKind.NEAREST: " (nearest)", CertificateKind.UNPROVEN: " (not proven)"}
        if self.kind == CertificateKind.WITHIN:
            return f" (within {_percent(self.gap)} of the nearest)"
        return words.get(self.kind, "")

    def sentence(self) -> str:
        """Return what was proven as one sentence.

        >>> Certificate(CertificateKind.NEAREST, "for this forest", 0.41, 0.0).sentence()
        'Proven for this forest: no allowed change is nearer than 0.41.'
        >>> Certificate(CertificateKind.WITHIN, "for this forest", 0.4, 0.03, reason="time ran out").sentence()
        'Within 3 % of the nearest: proven for this forest, no allowed change is nearer than 0.4 (time ran out).'
        >>> Certificate(CertificateKind.NONE_FOUND, reason="this kind of model is not known").sentence()
        'Not proven (this kind of model is not known).'
        """
        nearer, why = (
            f"no allowed change is nearer than {_down(self.bound)}",
            f" ({self.reason})" if self.reason else "",
        )
        if self.kind == CertificateKind.NEAREST:
            return f"Proven {self.how}: {nearer}."
        if self.kind == CertificateKind.WITHIN:
            return f"Within {_percent(self.gap)} of the nearest: proven {self.how}, {nearer}{why}."
        if self.kind == CertificateKind.NONE_EXISTS:
            return f"None exists among the allowed changes: proven {self.how}."
        known = f"; proven so far: {nearer}" if self.bound > 0 else ""
        return f"Not proven{why}{known}."


def _percent(share: float) -> str:
    """Return a share in per cent with two digits, rounded up: what is promised must hold.

    >>> _percent(0.0201), _percent(0.0003)
    ('2.1 %', '0.03 %')
    """
    percent = 100.0 * share
    step = 10.0 ** (floor(log10(percent)) - 1)
    return f"{ceil(percent / step - 1e-9) * step:.4g} %"


def _down(distance: float) -> str:
    """Return a distance with four digits, rounded down: nothing is nearer.

    >>> _down(0.41), _down(0.123456), _down(0.99999)
    ('0.41', '0.1234', '0.9999')
    """
    if not 0 < distance < inf:
        return f"{distance:g}"
    step = 10.0 ** (floor(log10(distance)) - 3)
    return f"{floor(distance / step + 1e-9) * step:.4g}"
