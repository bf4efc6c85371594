"""Whether a wheel works on a machine: an answer, a proof, and kernels that are compiled."""

from onbmacf import ONBMACF, Schema
from onbmacf._balls.kernels.compiled import are_compiled
from onbmacf.datasets import heart_network, load_heart

table, chd = load_heart()
explainer = ONBMACF().fit(table, heart_network().fit(table, chd), schema=Schema.infer(table, immutable=["age"]))
answers = explainer.explain(table.iloc[[4]], target=0, prove=True)
assert are_compiled()
assert answers[0].counterfactuals
print(answers.sentences()[0])
