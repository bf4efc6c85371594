"""Proofs for the rows of a call: the nearest answer comes first, and each row says what is proven about it.

    Found  ->  certified  ->  the same with what the proofs found, and a Certificate per row

A proof is about a model that can be read (`_prove`). Where it cannot, and a row may become few others, all of them are
asked, nearest first. What is read off a model is compared with it, and before a proof is believed the model itself is
asked about the points that would refute it. No model knows of a bound on neighbours: its structure proves that no label
is nearer, and where that point has too few neighbours, the nearest with enough is known by asking about all, or not.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onbmacf._balls.distance import paired
from onbmacf._base.arrays import Mask, Matrix, Rows, stack, take
from onbmacf._base.enums import CertificateKind, Relaxation, Status
from onbmacf._base.executor import watched
from onbmacf._base.limits import seconds_left
from onbmacf._explain.rows import Asker
from onbmacf._prove.columns import NotKnownError
from onbmacf._prove.copies import trial_points
from onbmacf._prove.domain import Domain
from onbmacf._prove.prove import Doubts, Proof, Prover, ask_nearest_first
from onbmacf._prove.readers import OTHER
from onbmacf._search.budget import turns
from onbmacf._search.choose import ALIKE
from onbmacf._search.problem import Found
from onbmacf._search.walk import WAY_BACK, lies_between, margins, way_back
from onbmacf._table.calls import ENDLESS, SOME
from onbmacf.certificate import Certificate
from onbmacf.explanations import Explanations

REFUTED = (
    "a proof was refuted: the model says of a nearer change what its structure denies. The certificate was withdrawn; "
    "please report it with the class and the parameters of the model."
)
MISSING = "the row has missing values"
CAUSES = "not with causes: proofs do not read how effects follow"
BOUNDED = "not with a bound on neighbours: the nearest change without it has too few"
OF_KNOWN = "among the labels of the fitted rows"
SOME_SLICES = 128  # of work on a row without an answer
MOST_ASKED = 1 << 14  # changes that are asked about where the model cannot be read
KEPT = [place for place, what in enumerate(Relaxation) if what in (Relaxation.NONE, Relaxation.PROJECTION)]


class Certified(NamedTuple):
    """What was found, with the nearest first, and what is proven about it, per row."""

    found: Found
    certificates: NDArray[Any]  # None for a row that was not searched


@dataclass(frozen=True, eq=False)
class _Proofs:
    """The proofs of one call; what they share is made once."""

    asker: Asker
    lines: Rows  # the rows to prove
    slices: int = ENDLESS  # of work on one row

    @cached_property
    def complete(self) -> Rows:
        """The places of the rows that lack no value: what is read off a model is about values."""
        return np.flatnonzero(~np.isnan(self.asker.factuals.N[self.lines]).any(axis=1))

    @cached_property
    def prover(self) -> Prover | str:
        """The model as read, or why it cannot be."""
        request, factuals = self.asker.request, self.asker.factuals
        asked = request.prove
        if not len(self.complete):
            return MISSING
        if request.fitted.space.effects is not None:
            return CAUSES
        reading = self.asker.box.reading
        if reading.between is not None:
            return "proofs cannot read a model behind a range"
        model = self.asker.box.model if asked is True else asked
        fitted, metric, lines = request.fitted, request.options.metric, self.lines[self.complete]
        try:
            domain = Domain(
                fitted.space, request.constraints, fitted.ranges, request.is_held, metric, factuals.N[lines]
            )
            form, ask = fitted.space.form, lambda trials: self.asker.box.ask_labels(trials, SOME)
            trials = trial_points(form, fitted.map.table.N)
            return Prover.of(model, domain, form, trials, ask, request.min_probability, reading)
        except NotKnownError as error:
            return str(error)

    @property
    def _seconds(self) -> float:
        """The most seconds for the next row."""
        request = self.asker.request
        return seconds_left(request.deadline, request.prove_seconds)

    def of_row(self, place: int, distance: float) -> tuple[Proof, str, Doubts | None]:
        """Return what is proven of the row at a place, how, and what would refute it.

        `distance` is that of the nearest answer known.
        """
        line, prover, seconds = int(self.lines[place]), self.prover, self._seconds
        reason = prover if isinstance(prover, str) else MISSING
        row = int(np.searchsorted(self.complete, place))
        if isinstance(prover, Prover) and place in self.complete:
            wanted = self.asker.box.named(np.flatnonzero(self.asker.factuals.wanted[line])).tolist()
            try:
                is_answer = lambda point: self._labelled(np.array([line]), point[np.newaxis])[0] >= 0  # noqa: E731
                proof = prover.row(row, wanted, distance, is_answer, seconds, self.slices)
                how = self._of_labels(line, f"for this {prover.structure.words}", prover.structure.classes)
                if self._has_too_few(line, proof):
                    proof = proof._replace(point=None, is_over=False, reason=BOUNDED)
                    asked, by_asking = self._by_asking(line, distance, BOUNDED)
                    if asked.is_over:
                        return asked, by_asking, None
                return proof, how, prover.doubts(row, wanted, proof.bound) if proof.bound > 0 else None
            except NotKnownError as error:
                reason = str(error)
        return *self._by_asking(line, distance, reason), None

    def _has_too_few(self, line: int, proof: Proof) -> bool:
        """Say whether what a proof has found is no answer, for it has too few neighbours.

        Then no answer is nearer, and nothing is known of those that are farther.
        """
        return proof.point is not None and self._accepted(np.array([line]), proof.point[np.newaxis])[0] < 0

    def _by_asking(self, line: int, distance: float, reason: str) -> tuple[Proof, str]:
        """Ask about all that the row may become, where that is little."""
        request, factuals = self.asker.request, self.asker.factuals
        rows = request.reach.rows(factuals.N[line], MOST_ASKED) if isinstance(request.options.metric, str) else None
        if rows is None:
            return Proof(0.0, None, False, 0.0, reason), ""
        Z, z = request.fitted.space.encode_numbers(rows), np.repeat(factuals.z[[line]], len(rows), axis=0)
        apart = paired(Z, z, request.options.metric)
        is_answer = lambda some: self._accepted(np.full(len(some), line), some) >= 0  # noqa: E731 - one line, passed on
        proof = ask_nearest_first(rows, apart, distance, is_answer, self._seconds)
        near = f", for an answer {request.near}" if request.near else ""
        return proof, self._of_labels(line, f"by asking about all {len(rows):,} allowed changes{near}", ())

    def _of_labels(self, line: int, how: str, classes: Iterable[Any]) -> str:
        """Say where a proof leaves out labels that no fitted row has, though any other label was asked for."""
        known, wanted = self.asker.box.classes.tolist(), self.asker.factuals.wanted[line]
        is_more = any(label not in known for label in np.asarray(classes).tolist()) or self.asker.notes.has_unseen(line)
        return f"{how}, {OF_KNOWN}" if is_more and wanted.sum() >= len(known) - 1 else how

    def refuted(self, proven: list["_Proven"]) -> dict[int, Matrix | None]:
        """Ask the model about the points that would refute proofs; return the rows whose proofs do not hold.

        And the nearer answer, where there is one.
        """
        doubted = {one.line: one.doubts for one in proven if one.doubts is not None and len(one.doubts.points)}
        if not doubted or not isinstance(self.prover, Prover):
            return {}
        lines = np.repeat([*doubted], [len(doubts.points) for doubts in doubted.values()])
        rows, columns = (np.concatenate(parts) for parts in zip(*doubted.values(), strict=True))
        found: dict[int, Matrix | None] = dict.fromkeys(lines[~self.prover.is_same(columns)].tolist())
        accepted = np.flatnonzero(self._labelled(lines, rows) >= 0)
        space, metric = self.asker.request.fitted.space, self.asker.request.options.metric
        apart = paired(self.asker.factuals.z[lines[accepted]], space.encode_numbers(rows[accepted]), metric)
        for at in accepted[np.argsort(-apart, kind="stable")].tolist():  # the nearest last
            has_neighbours = self._accepted(lines[[at]], rows[[at]])[0] >= 0
            found[int(lines[at])] = rows[at] if has_neighbours else found.get(int(lines[at]))
            self.asker.box.notices.append(REFUTED)
        return found

    def _accepted(self, factual: Rows, rows: Matrix, asker: Asker | None = None) -> Rows:
        """Return the label of each row that is an answer for the factual given with it; -1 for those that are not."""
        asker, accepted = asker or self.asker, np.full(len(rows), -1, dtype=np.intp)
        codes = asker.label_of(asker.request.fitted.space.encode_numbers(rows), factual)
        reached = asker.reached(codes, factual)
        accepted[reached] = codes[reached]
        return accepted

    def _labelled(self, factual: Rows, rows: Matrix) -> Rows:
        """Return the same whatever the neighbours: what a model's structure says is about labels alone."""
        request = replace(self.asker.request, min_neighbours=0)
        return self._accepted(factual, rows, replace(self.asker, request=request))

    def found(self, line: int, row: Matrix) -> Found:
        """Return a row found by a proof as a search would have.

        Its semifactual is the first place on the way back that has the factual's label and keeps the rules.
        """
        asker, z, rows = self.asker, self.asker.factuals.z[[line]], row[np.newaxis]
        point, label = asker.request.fitted.space.encode_numbers(rows), self._accepted(np.array([line]), rows)
        places, factual = way_back(z, point, asker.snap), np.full(WAY_BACK, line)
        said = asker.plain_label_of(places, factual)
        is_less = (said == asker.factuals.codes[line]) & lies_between(z, places, point)
        is_less &= asker.is_allowed(places, factual)
        less = places[is_less][:1] if is_less.any() else z
        return Found(
            factual=factual[:1],
            ball=np.array([-1]),
            label=label,
            relaxation=np.array([0]),
            counterfactual=point,
            semifactual=less,
            has_semifactual=is_less.any(keepdims=True),
            again=said[:1],
            margin=margins(said[np.newaxis, 1:], label),
            numbers=asker.numbers(point, factual[:1]),
            semifactual_numbers=asker.numbers(less, factual[:1]),
            probability=np.array([np.nan]),
        )


class _Proven(NamedTuple):
    """What was proven of one row, before it is doubted."""

    line: int
    proof: Proof
    how: str
    distance: float
    doubts: Doubts | None


def certified(asker: Asker, found: Found) -> Certified:
    """Prove what can be proven of every open row, and put what the proofs found first."""
    return _certified(_Proofs(asker, asker.factuals.open_lines()), found)


def certified_of_the_lost(asker: Asker, found: Found, lost: Rows) -> Certified:
    """Do the same for rows without an answer, where the model can be read: there is one, or none exists.

    With the same work on any machine, however long it takes.
    """
    least = asker.request.required
    request = replace(asker.request, prove=True, prove_seconds=np.inf, min_probability=least, settles=False)
    return _certified(_Proofs(replace(asker, request=request), lost, SOME_SLICES), found)


def _certified(proofs: _Proofs, found: Found) -> Certified:
    asker, lines = proofs.asker, proofs.lines
    certificates = np.full(len(asker.factuals.z), None, dtype=object)
    if not len(lines):
        return Certified(found, certificates)
    new: list[Found] = [found]
    proven: list[_Proven] = []
    apart = _distances(asker, found)
    for place, line in enumerate(watched(lines.tolist(), "proving")):
        distance = float(apart[found.factual == line].min(initial=np.inf))
        proof, how, doubts = proofs.of_row(place, distance)
        if proof.point is not None:
            new.append(proofs.found(line, proof.point))
            distance = float(_distances(asker, new[-1])[0])
        proven.append(_Proven(line, proof, how, distance, doubts))
    refuted = proofs.refuted(proven)
    for line, proof, how, distance, _ in proven:
        nearer = refuted.get(line)
        if nearer is not None:
            new.append(proofs.found(line, nearer))
            distance = float(_distances(asker, new[-1])[0])
        if line in refuted:
            proof, how = Proof(0.0, None, False, proof.seconds, OTHER), ""
        how = f"{how}, for labels {asker.request.sure}" if how and asker.request.sure else how
        certificates[line] = Certificate.of(distance, proof.bound, proof.is_over, how, proof.seconds, proof.reason)
    return Certified(_nearest_first(asker, stack(new)), certificates)


def _distances(asker: Asker, found: Found) -> Matrix:
    """Return the distance of each line; infinite where something was released or the model said otherwise later."""
    apart = paired(asker.factuals.z[found.factual], found.counterfactual, asker.request.options.metric)
    return np.where(np.isin(found.relaxation, KEPT) & (found.again == found.label), apart, np.inf)


def _nearest_first(asker: Asker, found: Found) -> Found:
    """Put each row's nearest line first, keep the order of the others, and as many as were asked for.

    Lines that are almost the first one come last: a proof often moves an answer of the search by a step or two.
    """
    apart, order = _distances(asker, found), np.arange(len(found.factual))
    rank = order.astype(np.float64)
    for line in np.unique(found.factual):
        lines = np.flatnonzero(found.factual == line)
        first = lines[apart[lines].argmin()]
        rank[lines] += np.where(_is_like(asker, found, lines, int(first)), len(order), 0)
        rank[first] = -1.0
    found = take(found, np.lexsort((rank, found.factual)))
    if asker.request.front:
        return found
    return take(found, turns(found.factual) < asker.request.options.n_counterfactuals)


def _is_like(asker: Asker, found: Found, lines: Rows, first: int) -> Mask:
    """Say which lines of a row change the same features as the first and are hardly anywhere else."""
    points, space = found.counterfactual[lines], asker.request.fitted.space
    changed = space.changed(points, asker.factuals.z[found.factual[lines]])
    is_same = (changed == changed[lines == first]).all(axis=1)
    apart = paired(points, np.repeat(found.counterfactual[[first]], len(lines), axis=0), asker.request.options.metric)
    return np.asarray(is_same & (apart <= ALIKE))


def with_proofs(answers: Explanations, certificates: NDArray[Any], are_told: bool = True) -> Explanations:
    """Add certificates to answers; a row of which it is proven that none exists is infeasible and says so.

    Where they are not to be told, nothing else is added.
    """
    statuses, reasons = answers.statuses.copy(), answers.reasons.copy()
    for line, one in enumerate(certificates):
        if one is not None and one.kind == CertificateKind.NONE_EXISTS and statuses[line] == Status.NONE_FOUND:
            statuses[line], reasons[line] = Status.INFEASIBLE, f"None exists: proven {one.how}."
    answers = replace(answers, statuses=statuses, reasons=reasons)
    return replace(answers, certificates=certificates) if are_told else answers
