"""What the model says of rows, without a search: rows that cannot be asked get a status and a reason, as in `explain`.

rows  ->  Factuals  ->  predictions  ->  frame: label, probability, status and reason of each row
"""

from typing import Any

import numpy as np
import pandas as pd

from onbmacf._base.arrays import objects
from onbmacf._batch.call import Call, Query
from onbmacf._batch.factuals import Factuals
from onbmacf._batch.fitted import Fitted
from onbmacf._batch.question import Question
from onbmacf._rows.isolate import ENDLESS
from onbmacf._search.options import Options
from onbmacf._search.strategies import checked

PREDICTED = "predicted"


def predictions(fitted: Fitted, options: Options, rows: Any) -> pd.DataFrame:
    """Return one line per row, with the caller's index."""
    fitted.check(checked(options))
    frame, _ = fitted.space.form.arrange(rows)
    box = fitted.black_box.counting()
    own = Factuals.of(frame, Call.of(fitted, options, Query.of(Question(), box.classes)), box)
    known = np.flatnonzero((own.codes >= 0) & (own.codes < len(box.classes)))
    found = box.probability(own.N[known], own.codes[known], retries=ENDLESS)
    probability = np.full(len(frame), np.nan)
    if found is not None:
        probability[known] = found
    is_said = own.codes >= 0  # a label that no fitted row has is said, too
    columns = {
        "label": pd.Series(objects(own.labels), frame.index, dtype=object),  # None where there is none
        "probability": probability,
        "status": objects(np.where(is_said, PREDICTED, own.statuses)),
        "reason": objects(np.where(is_said, "", own.reasons)),
    }
    return pd.DataFrame(columns, index=frame.index)
