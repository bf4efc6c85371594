"""One explain: rows -> factuals -> search -> answers -> reasons, one way through, no stage twice.

fitted map, Options, rows, Question  ->  explain_rows  ->  the map, Explanations
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.arrays import Rows, take
from onbmacf._base.executor import watched
from onbmacf._base.limits import NEVER
from onbmacf._base.origin import Origin
from onbmacf._columns.interop import is_dask_frame, pandas_frame
from onbmacf._explain.answers import answered
from onbmacf._explain.distributed import explain_on, explain_partitions
from onbmacf._explain.fitted import Fitted
from onbmacf._explain.infeasible import with_reasons
from onbmacf._explain.ranges import with_ranges
from onbmacf._explain.request import PROBABILITIES, Question, Request, without_columns
from onbmacf._explain.rows import Asker
from onbmacf._explain.searches import is_first, search_all, searched
from onbmacf._search.options import Options
from onbmacf._search.problem import Effort, Found
from onbmacf._search.strategies import checked
from onbmacf._table.gate import admit
from onbmacf._table.model import BlackBox
from onbmacf.errors import OnbmacfWarning
from onbmacf.explanations import Explanations

NO_RANGES = "there are no ranges with blocks: their features change together, to the values of a fitted row."
MANY_ROWS = 100  # that are searched at once: what larger calls save is more than finding out whether they may be used


def explain_rows(fitted: Fitted, options: Options, rows: Any, asked: Sequence[Any], client: Any = None) -> Explanations:
    """Explain rows in any form; `asked` are the fields of a `Question`, in order.

    Rows that are asked differently are explained in groups; the answers come back in the order of the rows.
    """
    fitted.check(checked(options))
    question = Question(*asked).timed()
    form, labels = fitted.space.form, fitted.black_box.classes.tolist()
    features = form.schema.names
    known = {"target": labels, "immutable": features, "vary": features, "min_probability": PROBABILITIES}
    if is_dask_frame(rows):
        request = _elsewhere(Request.of(fitted, options, question.for_partitions()))
        sample = form.frame(fitted.probes[:2])  # explained to know what the answers will look like
        return explain_partitions(request, rows, sample, client)
    rows = pandas_frame(rows)
    question, columns = question.of_rows(rows, known)
    frame, ignored = form.arrange(without_columns(rows, columns))
    parts = [
        (lines, Request.of(fitted, options, same)) for lines, same in question.for_index(frame.index).parts(len(frame))
    ]
    for message in ignored:
        warnings.warn(message, OnbmacfWarning, stacklevel=3)
    if len(parts) == 1:
        answers = _explain_part(parts[0][1], frame, client)
    else:
        found = [_explain_part(request, frame.iloc[lines], client) for lines, request in watched(parts, "explaining")]
        answers = Explanations.concat(found).in_order(np.concatenate([lines for lines, _ in parts]))
    return replace(answers, warnings=(*fitted.warnings, *ignored, *answers.warnings), origin=Origin(fitted))


def _explain_part(request: Request, frame: pd.DataFrame, client: Any) -> Explanations:
    if client is not None and len(frame):
        return explain_on(client, _elsewhere(request), frame)
    return explain_frame(request, frame)


def explain_frame(request: Request, frame: pd.DataFrame) -> Explanations:
    """Explain rows in the fitted order of columns."""
    box = _box(request, frame)
    factuals, found, effort = searched(request, admit(request.fitted.space, frame), box)
    answers = _answered(Asker(request, box, factuals), found, effort, frame)

    asked = np.zeros(len(frame), dtype=np.intp)  # beside the search itself

    def again(other: Request, lines: Rows) -> Explanations:
        some = take(factuals, lines)
        found, effort = search_all(other, some, box)
        asked[lines] += effort.asked
        return answered(Asker(other, box, some), found, effort, frame.iloc[lines])

    answers = with_reasons(request, factuals, answers, effort.ran_out, again, asked)
    in_blocks = request.fitted.blocks is not None
    if request.ranges and not in_blocks:
        answers = with_ranges(request, factuals, answers, effort.left, box)
    names = ("n_calls", "n_questions", "n_model_rows", "n_member_questions", "n_copy_questions")
    noticed = tuple(dict.fromkeys([*box.notices, *([NO_RANGES] * (request.ranges and in_blocks))]))
    return replace(answers, warnings=noticed, **{name: getattr(box.counts, name) for name in names})


def _box(request: Request, frame: pd.DataFrame) -> BlackBox:
    """Return the model with counts of its own; where many rows are searched, it may be called with more at once.

    Not where the caller has said how many rows a call may have (decision 0018); within limits or a time a call has at
    most as many rows as the option says.
    """
    box, options = request.fitted.black_box.counting(), request.options
    if request.deadline != NEVER or options.limits:
        return box
    is_free = options.has_default("predict_chunk")
    is_many = len(frame) >= MANY_ROWS and int(is_first(frame).sum()) >= MANY_ROWS  # equal rows are searched once
    return box.in_large_calls(request.fitted.probes) if is_many and is_free else box


def _answered(asker: Asker, found: Found, effort: Effort, frame: pd.DataFrame) -> Explanations:
    """Return the answers, with proofs where they are asked for.

    Where the model was read, rows without an answer are proven to have none, or the proof finds one.
    """
    is_proof, lines = asker.request.is_proof, asker.factuals.open_lines()
    is_lost = ~effort.is_proven
    is_lost[found.factual] = False
    lost = lines[is_lost[lines]]
    if not is_proof and not (_was_read(asker) and len(lost)):
        return answered(asker, found, effort, frame)
    from onbmacf._explain.certified import certified, certified_of_the_lost, with_proofs  # loaded for proofs only

    found, certificates = certified(asker, found) if is_proof else certified_of_the_lost(asker, found, lost)
    return with_proofs(answered(asker, found, effort, frame), certificates, is_proof)


def _was_read(asker: Asker) -> bool:
    """Say whether an exact copy of the model was searched, and as far as the search goes."""
    request, box = asker.request, asker.box
    is_whole = request.deadline == NEVER and not request.options.limits and not request.front
    is_whole &= request.fitted.blocks is None  # what is proven is about single features
    return is_whole and box.counts.n_copy_questions > 0 and request.fitted.heard.is_copy_right


def _elsewhere(request: Request) -> Any:
    """Return the function from rows to answers that other machines get, with all it needs."""
    request.fitted.prepare()
    return partial(_explain_alone, replace(request, options=replace(request.options, n_jobs=1)))


def _explain_alone(request: Request, rows: pd.DataFrame) -> Explanations:
    """Explain on a worker, in this thread alone."""
    return explain_frame(request, request.fitted.space.form.arrange(rows)[0])
