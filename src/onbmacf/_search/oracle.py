"""The one way in which the refined search asks the model.

    points near some factuals  ->  Oracle.ask      ->  margins: above 0 a point is an answer
    points to be returned      ->  Oracle.confirm  ->  labels, by the model's own `predict`

Behind it lie the size of calls, the budget of a row and the deadline, rows on which the model raises, the committee,
and the exact copy that stands in for a model that can be read. A margin is what the best wanted label scores more than
the best other. Where the model gives labels alone, scores are a guess, by trees learnt from the fitted rows. So they
are for points on which the scoring method raises or returns NaN: `predict` is asked about these.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from onbmacf._base.arrays import Mask, Matrix, Rows, objects
from onbmacf._base.limits import NEVER, is_over
from onbmacf._search.budget import UNASKED, turns
from onbmacf._search.kernels import donors, rounds
from onbmacf._search.options import Options
from onbmacf._table.calls import ENDLESS, SOME, Notes
from onbmacf._table.committee import Committee
from onbmacf._table.model import FAILED, PRINTED, BlackBox
from onbmacf.errors import ParameterError

REFUSED = -1e-6  # the margin of a point whose best score is a tie that the model decides otherwise
SLIGHTLY = 1e-6  # by so much the label that was said scores more than any other, where scores are a guess
UNLIMITED = 1 << 60
DISTRUSTED = "the copy of the model said something else than the model itself, which is asked from now on."


Raised = tuple[Rows, Exception]  # lines of a call, and what the model raised on them


class Copy(Protocol):
    """An exact copy of a model."""

    def answers(self, N: Matrix) -> Matrix:
        """Return what the model's scoring method would."""


class Terms(NamedTuple):
    """What a point must keep beside its label."""

    least: float = 0.0  # probability
    committee: Committee | None = None
    settles: bool = False  # whether a factual without such a point gets one of any probability


class Reply(NamedTuple):
    """What is known of points that were asked about."""

    codes: Rows  # labels; FAILED where the model raised
    scores: Matrix  # points x classes; NaN where it raised
    probability: Matrix | None  # points x classes, where the scores are probabilities


class Oracle:
    """Answers for some factuals, within what may be spent on each of them."""

    def __init__(
        self,
        box: BlackBox,
        factuals: Matrix,
        options: Options,
        terms: Terms,
        deadline: float = NEVER,
        model_copy: Copy | None = None,
        guess: Callable[[Matrix], Matrix] | None = None,
        complete: Callable[[Matrix, Matrix], Matrix] | None = None,
    ) -> None:
        self.box, self.factuals, self.notes = box, factuals, Notes()
        self._terms, self._deadline, self._copy = terms, deadline, model_copy
        self._guess = guess  # points -> scores per label, where the model has none
        self._complete = complete  # points, factuals -> with all that follows from what was changed; None: nothing does
        self._rows_left = np.full(len(factuals), min(options.max_model_rows or UNLIMITED, UNLIMITED), dtype=np.int64)
        self._calls_left = options.max_model_calls or UNLIMITED  # rows are searched one by one where calls are counted
        self._counts_calls = options.max_model_calls is not None
        self.has_limits = bool(options.limits)
        self.asked = np.zeros(len(factuals), dtype=np.intp)  # questions about each factual
        self.failed = np.zeros(len(factuals), dtype=np.intp)  # of these, on which the model raised
        self._has_no_score = np.zeros(len(factuals), dtype=bool)  # factuals that `predict` labels and nothing scores
        self.ran_out = np.zeros(len(factuals), dtype=bool)
        self.settled = np.zeros(len(factuals), dtype=bool)  # factuals whose answers may have any probability
        if terms.least > 0 and (box.scorer is None or not box.scorer.has_probabilities) and box.names is None:
            why = box.no_probability or "this one has no predict_proba with classes_"
            raise ParameterError(f"min_probability needs a model that gives probabilities: {why}.")

    # --- what may be spent ---

    @property
    def is_late(self) -> bool:
        """Whether the time of the call is up; then every search that goes on was cut short."""
        if is_over(self._deadline):
            self.ran_out[:] = True
            return True
        return False

    @property
    def reads(self) -> bool:
        """Whether the copy of the model is asked."""
        return self._copy is not None

    @property
    def is_limited(self) -> bool:
        """Whether questions are counted against a limit: those to a copy are not."""
        return self.has_limits and self._copy is None

    @property
    def sees_scores(self) -> bool:
        """Whether the model itself is asked for scores, which `predict` may contradict."""
        return self.box.scorer is not None and self._copy is None

    @property
    def patience(self) -> tuple[int, float]:
        """After how many rounds a factual has had enough that gets better by less than this part of its score.

        Scores tell best how far a point is from being an answer, and members of a committee do not tell it at all.
        """
        if self._terms.committee is not None:
            return 1 << 10, 0.0  # all rounds
        if self.box.scorer is None:
            return 3, 0.02
        return (3 if self.is_limited else 2), 0.03  # a limit is for use

    @property
    def calls_left(self) -> int:
        """Calls that may still be made."""
        return int(self._calls_left)

    def room(self, reserve: int) -> Rows:
        """Return how many points each factual may ask about in the next call, with some and their call set aside."""
        if self.is_late:
            return np.zeros(len(self.factuals), dtype=np.intp)
        if self.reads:
            return np.full(len(self.factuals), UNLIMITED, dtype=np.intp)
        left = np.maximum(0, self._rows_left - reserve)
        if self._calls_left <= (reserve > 0):
            left[:] = 0
        elif self._counts_calls:
            left = np.minimum(left, self.box.largest)
        return left.astype(np.intp)

    def _spend(self, factual: Rows, n_calls: int, n: int = 1) -> None:
        self.asked += np.bincount(factual, minlength=len(self.factuals))
        if self.has_limits:
            self._rows_left -= n * np.bincount(factual, minlength=len(self.factuals))
            self._calls_left -= n_calls if self._counts_calls else 0

    # --- asking ---

    def ask(self, N: Matrix, factual: Rows, retries: int = SOME) -> Reply:
        """Ask about points that keep the rules, each near its factual."""
        if not len(N):
            return Reply(np.empty(0, dtype=np.intp), np.empty((0, len(self.box.classes))), None)
        N = N if self._complete is None else self._complete(N, self.factuals[factual])
        if self._copy is not None:
            self.box.counts.n_copy_questions += len(N)
            self.asked += np.bincount(factual, minlength=len(self.factuals))
            return self._read(self._copy.answers(N), factual)
        if self._counts_calls:  # one call is left to confirm what is found
            retries = max(0, min(retries, (self._calls_left - 2) // max(1, self.box.largest // self.box.chunk)))
        if self.box.scorer is not None:
            return self._scored(N, factual, retries)
        codes, scores = self._labelled(N, factual, retries)
        return Reply(codes, scores, self._probabilities(N, codes, factual))

    def ask_again(self, reply: Reply, N: Matrix, factual: Rows, lines: Rows, is_own: bool = False) -> None:
        """Ask again about lines that raised, or that a call took along that did, and write into the reply.

        The factuals' own rows are asked about until each that raises is known.
        """
        self.failed -= np.bincount(factual[lines], minlength=len(self.factuals))
        self.notes.forget(factual[lines])
        other = self.ask(N[lines], factual[lines], ENDLESS if is_own else SOME)
        reply.codes[lines] = other.codes
        if len(lines):
            reply.scores[lines] = _with_others(other.scores, reply.scores.shape[1])
        if reply.probability is not None and other.probability is not None:
            reply.probability[lines] = other.probability

    def _scored(self, N: Matrix, factual: Rows, retries: int) -> Reply:
        """Ask for scores, and for labels where there are none."""
        answer = np.full((len(N), len(self.box.all_names or ())), np.nan)
        lines = np.flatnonzero(~self._has_no_score[factual])
        # Halving a call that raises takes calls: where they are counted, labels for all of it take only one.
        few = 0 if self._counts_calls and self._terms.least == 0 else retries
        errors = self._ask_scores(answer, N, factual, lines, few)
        reply = self._read(answer, factual)
        if errors or len(lines) < len(N):
            reply = self._mended(answer, errors, N, factual, lines, retries)
        if reply.probability is None:
            reply = reply._replace(probability=self._probabilities(N, reply.codes, factual))
        elif len(lines) < len(N) and self._terms.least > 0:
            rest = np.flatnonzero(self._has_no_score[factual])
            found = self._probabilities(N[rest], reply.codes[rest], factual[rest])
            reply.probability[rest] = np.nan if found is None else found
        return reply

    def _mended(
        self, answer: Matrix, errors: list[Raised], N: Matrix, factual: Rows, lines: Rows, retries: int
    ) -> Reply:
        """Ask again where scores are missing, then for labels; what has neither has failed."""
        at_factual = lines[np.isnan(answer[lines]).any(axis=1) & self._is_factual(N[lines], factual[lines])]
        if len(at_factual) and not self.has_limits:  # no factual loses its scores to others in the call
            errors += self._ask_scores(answer, N, factual, at_factual, ENDLESS)
            regained = np.isin(factual, factual[at_factual[~np.isnan(answer[at_factual]).any(axis=1)]])
            rest = np.flatnonzero(regained & np.isnan(answer).any(axis=1))
            errors += self._ask_scores(answer, N, factual, rest, retries)
        unscored: Mask = np.asarray(np.isnan(answer).any(axis=1))
        if self._terms.least == 0:  # all points of such a factual can be compared; a least probability needs each one's
            self._has_no_score[factual[at_factual[unscored[at_factual]]]] = True
            unscored |= self._has_no_score[factual]
        reply = self._read(answer, factual)
        if unscored.any():
            reply = self._with_labels(reply, np.flatnonzero(unscored), N, factual, retries)
        for at, error in errors:
            told = unscored[at] if self._terms.least > 0 else reply.codes[at] == UNASKED
            self.notes.raise_on(factual[at[told]], error)
        reply.codes[reply.codes == UNASKED] = FAILED
        return reply

    def _ask_scores(self, answer: Matrix, N: Matrix, factual: Rows, lines: Rows, retries: int) -> list[Raised]:
        """Ask for scores of some lines, write them into the answer, and return the lines that have none."""
        before = self.box.counts.n_calls
        answer[lines], errors = self.box.ask_scores(N[lines], retries)
        self._spend(factual[lines], self.box.counts.n_calls - before)
        return [(lines[at], error) for at, error in errors]

    def _is_factual(self, N: Matrix, factual: Rows) -> Mask:
        start = self.factuals[factual]
        return np.asarray(((start == N) | (np.isnan(N) & np.isnan(start))).all(axis=1))

    def _with_labels(self, reply: Reply, lines: Rows, N: Matrix, factual: Rows, retries: int) -> Reply:
        """Return a reply with labels by `predict` on some lines, and guessed scores; UNASKED beyond the budget."""
        codes, scores = reply.codes, _with_others(reply.scores, len(self.box.classes) + 1)
        codes[lines], scores[lines] = UNASKED, np.nan
        if self.has_limits:
            within = turns(factual[lines]) < self._rows_left[factual[lines]]
            lines = lines[within & (self._calls_left > 0)]
        if len(lines):
            codes[lines], scores[lines] = self._labelled(N[lines], factual[lines], retries)
        return Reply(codes, scores, reply.probability)

    def _read(self, answer: Matrix, factual: Rows) -> Reply:
        scorer, box = self.box.scorer, self.box
        assert scorer is not None
        with np.errstate(invalid="ignore"):
            scores = scorer.read(answer)
        codes = scores.argmax(axis=1)  # the place of a NaN, where there is one
        codes[np.isnan(scores[np.arange(len(codes)), codes])] = FAILED
        if scores.shape[1] > len(box.classes):  # a class that no fitted row has
            others = [name for name in box.all_names or () if name not in box.classes.tolist()]
            self.notes.unseen_on(factual[codes == len(box.classes)], others)
        probability = np.round(scorer.of_classes(answer), PRINTED) if scorer.has_probabilities else None
        return Reply(codes, scores, probability)

    def _labelled(self, N: Matrix, factual: Rows, retries: int) -> tuple[Rows, Matrix]:
        """Ask for labels, and guess how near a point is to others; return labels and scores."""
        before = self.box.counts.n_calls
        labels = self.box.ask_labels(N, retries)
        self._spend(factual, self.box.counts.n_calls - before)
        codes = self.box.codes(labels)
        self.notes.take(labels, codes, factual, len(self.box.classes))
        raised = codes == FAILED
        self.failed += np.bincount(factual[raised], minlength=len(self.factuals))
        scores = np.zeros((len(N), len(self.box.classes) + 1)) if self._guess is None else self._guess(N)
        donors.believe(scores, np.ascontiguousarray(codes), SLIGHTLY)
        return codes, np.round(scores, 9)

    def _probabilities(self, N: Matrix, codes: Rows, factual: Rows) -> Matrix | None:
        """Ask for probabilities where they must reach a least one, though the label is not that of the highest."""
        if self._terms.least == 0 or self.box.names is None:
            return None
        before = self.box.counts.n_calls
        found = np.full((len(N), len(self.box.classes)), np.nan)
        known = np.flatnonzero((codes >= 0) & (codes < len(self.box.classes)))

        def noted(lines: Rows, error: Exception) -> None:
            self.notes.raise_on(factual[known[lines]], error)

        probability = self.box.probability(N[known], codes[known], noted)
        if probability is None:
            why = self.box.no_probability or "this one has no predict_proba with classes_"
            raise ParameterError(f"min_probability needs a model that gives probabilities: {why}.")
        found[known, codes[known]] = probability
        self._spend(factual[:0], self.box.counts.n_calls - before)
        return found

    def settle(self, reply: Reply, N: Matrix, factual: Rows) -> None:
        """Ask `predict` for the labels of points whose best scores are a tie, and write them into the reply.

        Within a budget nothing more is asked.
        """
        best = np.partition(reply.scores, -2, axis=1)[:, -2:] if reply.scores.shape[1] > 1 else np.empty((0, 2))
        lines = np.flatnonzero(best[:, 0] == best[:, 1])
        if len(lines) and not self.has_limits:
            codes, _ = self.confirm(N[lines], factual[lines])
            scores = reply.scores[lines]
            donors.believe(scores, codes, SLIGHTLY)
            reply.codes[lines], reply.scores[lines] = codes, scores

    def margins(self, reply: Reply, N: Matrix, factual: Rows, wanted: Mask) -> Matrix:
        """Return by how much points are answers; minus infinity where the model raised."""
        if not len(N):
            return np.empty(0)
        margin, codes = np.empty(len(N)), np.ascontiguousarray(reply.codes)
        given = np.ascontiguousarray(reply.scores), codes, wanted.view(np.int8), np.ascontiguousarray(factual)
        rounds.margins(*given, REFUSED, margin)
        if self._terms.least > 0:
            reached = (codes >= 0) & (codes < wanted.shape[1])
            reached[reached] = wanted[factual[reached], codes[reached]]
            margin = np.minimum(margin, np.where(self.settled[factual], np.inf, self._above_least(reply, reached)))
        if self._terms.committee is not None:
            good = np.flatnonzero(margin > 0)
            whole = N[good] if self._complete is None else self._complete(N[good], self.factuals[factual[good]])
            agreed = self._terms.committee.agree(whole, codes[good], self.box.counts)
            margin[good] = np.where(agreed, margin[good], -margin[good])  # as far from an answer as it was one
        return margin

    def _above_least(self, reply: Reply, reached: Mask) -> Matrix:
        """Return how far the probability of the label lies above the least one; minus infinity where unknown.

        Where the label is not a wanted one, an unknown probability does not matter.
        """
        scorer, least = self.box.scorer, self._terms.least
        assert reply.probability is not None
        line = np.arange(len(reply.codes))
        sure = reply.probability[line, np.where(reached, reply.codes, 0)]
        above = sure - least if scorer is None else scorer.margin(sure, least)
        # A probability that is just enough is enough.
        above = np.where(sure >= least, np.maximum(above, 1e-9), np.minimum(above, -1e-9))
        return np.where(np.isnan(sure), np.where(reached, -np.inf, np.inf), above)

    def confirm(self, N: Matrix, factual: Rows) -> tuple[Rows, NDArray[Any]]:
        """Ask the model's own `predict` about points as they will be printed; return label codes and labels.

        What the budget does not allow is UNASKED. Points found in time are confirmed after the time is up, too.
        """
        N = N if self._complete is None else self._complete(N, self.factuals[factual])
        codes = np.full(len(N), UNASKED, dtype=np.intp)
        labels = np.full(len(N), None, dtype=object)
        asked = np.arange(len(N))
        if self.has_limits:
            most = self._rows_left if self._calls_left > 0 else np.zeros_like(self._rows_left)
            if self._counts_calls:
                most = np.minimum(most, self._calls_left * self.box.largest)
            asked = np.flatnonzero(turns(factual) < most[factual])
        if len(asked):
            before = self.box.counts.n_calls
            said = self.box.ask_labels(N[asked], ENDLESS)
            codes[asked] = self.box.codes(said)
            labels[asked] = said.tolist()
            self.notes.take(said, codes[asked], factual[asked], len(self.box.classes))
            self.failed += np.bincount(factual[asked][codes[asked] == FAILED], minlength=len(self.factuals))
            self._spend(factual[asked], self.box.counts.n_calls - before)
        return codes, labels

    def named(self, codes: Rows) -> NDArray[Any]:
        """Return the labels of factuals by their codes, and the error where the model raised."""
        box = self.box
        others = box.unseen or [name for name in box.all_names or () if name not in box.classes.tolist()]
        known = dict(enumerate([*box.classes, *others]))
        return objects([known.get(code, self.notes.error(row)) for row, code in enumerate(codes.tolist())])

    def left(self) -> Rows:
        """Return how many more points each factual may be asked about, in all calls that are left."""
        if self.is_late:
            return np.zeros(len(self.factuals), dtype=np.intp)
        in_calls = self._calls_left * self.box.largest if self._counts_calls else UNLIMITED
        return np.clip(self._rows_left, 0, in_calls).astype(np.intp)

    def has_scores(self, factual: int) -> bool:
        """Say whether points of a factual are accepted by scores, not by labels."""
        return self.sees_scores and not self._has_no_score[factual]

    def doubt(self, factuals: Mask) -> bool:
        """Ask for labels alone about points of some factuals: their scores do not say what `predict` says.

        Say whether that is new of any.
        """
        is_new = bool((factuals & ~self._has_no_score).any())
        self._has_no_score |= factuals
        return is_new

    def settle_for_less(self, factuals: Mask) -> Mask:
        """Accept answers of any probability for some factuals, where the terms allow that; return which of them."""
        new = factuals & ~self.settled & self._terms.settles
        self.settled |= new
        return new

    def by_labels(self) -> "Oracle":
        """Return an oracle that asks for labels alone: no call is left in which scores could be confirmed."""
        other = copy(self)
        other.box = replace(self.box, scorer=None)
        other._copy = None
        if self._terms.settles:  # a probability would be another call
            other._terms = self._terms._replace(least=0.0)
        return other

    def distrust(self) -> None:
        """Ask the model itself from now on: its copy said something else."""
        self._copy = None
        self.settled[:] = False
        self.box.notices.append(DISTRUSTED)


def _with_others(scores: Matrix, width: int) -> Matrix:
    """Return scores with a column for labels that no fitted row has, the least of all, where there is none yet."""
    if scores.shape[1] == width:
        return scores
    return np.column_stack([scores, np.full(len(scores), -np.inf)])
