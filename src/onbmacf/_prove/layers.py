"""Networks as layers of units: scikit-learn's, a torch `Sequential`, an ONNX graph.

estimator  ->  reader  ->  Network; without hidden layers Additive
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onbmacf._base.arrays import Matrix
from onbmacf._prove.columns import NotKnownError, is_kind
from onbmacf._prove.structures import DOUBLE, SINGLE, Additive, Network, behind, two
from onbmacf._table.readings import raw_of


def read_network(model: Any, size: Matrix) -> Network:
    """Read scikit-learn's network."""
    if model.out_activation_ not in ("logistic", "softmax") or getattr(model, "_label_binarizer", None) is None:
        raise NotKnownError("this kind of network is not known")
    if model._label_binarizer.y_type_.startswith("multilabel"):
        raise NotKnownError("the model has several outputs")
    weights, bias = ([layer.astype(np.float64) for layer in every] for every in (model.coefs_, model.intercepts_))
    if len(weights) < 2:
        raise NotKnownError("a network without hidden layers is not known")
    if model.n_outputs_ == 1:  # the sum of the second class against the first
        weights[-1], bias[-1] = np.pad(weights[-1], ((0, 0), (1, 0))), np.pad(bias[-1], (1, 0))
    unit = float(np.finfo(model.coefs_[0].dtype).eps)
    network: Network
    own = lambda C: behind(network.scores(C), model.predict_proba(C), unit)  # noqa: E731
    network = Network("network", model.classes_, weights, bias, own, size, unit, activation=model.activation)
    return network


# --- layers in a row --------------------------------------------------------------------------------------------------


class Dense(NamedTuple):
    """A layer of sums."""

    weights: Matrix  # columns or units of the layer before x units
    bias: Matrix


Part = Dense | str  # a layer, or what is done to its sums: "relu", "sigmoid" or "softmax"


def _stacked(parts: list[Part], said: Callable[[Matrix], Any], size: Matrix, unit: float) -> Network | Additive:
    """Return layers as a structure: sums, rectified but for the last ones, of which there may be probabilities."""
    parts = [part for part in parts if part != ""]
    end = parts.pop() if parts and isinstance(parts[-1], str) else ""
    dense = [part for part in parts[::2] if isinstance(part, Dense)]
    if not dense or len(parts) != 2 * len(dense) - 1 or any(part != "relu" for part in parts[1::2]):
        raise NotKnownError("a network whose layers are not sums and rectified units in turn is not known")
    weights, bias = [part.weights for part in dense], [part.bias for part in dense]
    n_outputs = len(bias[-1])
    if end not in ("", "sigmoid" if n_outputs == 1 else "softmax"):
        raise NotKnownError(f"a network of {n_outputs} outputs that ends in {end!r} is not known")
    if n_outputs == 1:  # the sum of the second class against the first
        weights[-1], bias[-1] = np.pad(weights[-1], ((0, 0), (1, 0))), np.pad(bias[-1], (1, 0))

    def own(columns: Matrix) -> Matrix:
        """Return the model's own sums, or those of the structure where their probabilities are the model's."""
        answer = np.asarray(said(columns), dtype=np.float64).reshape(len(columns), -1)
        if not end:
            return two(answer)
        shares = np.column_stack([1.0 - answer, answer]) if n_outputs == 1 else answer
        return behind(found.scores(columns), shares, unit)

    classes, link = np.arange(len(bias[-1])), "softmax" if end else ""
    found: Network | Additive
    if len(weights) > 1:
        found = Network("network", classes, weights, bias, own, size, unit, link)
    else:
        found = Additive("linear model", classes, weights[0], bias[0], link, own, float(size.max(initial=0.0)), unit)
    return found


def read_torch(model: Any, size: Matrix) -> Network | Additive:
    """Read a torch `Sequential` of linear layers and rectified units; its labels are numbers from 0 on."""
    raw, tensors = raw_of(model), list(model.parameters())
    if any(part._forward_hooks or part._forward_pre_hooks for part in model.modules()):
        raise NotKnownError("a torch network with hooks is not known")
    kinds = {str(tensor.dtype) for tensor in tensors}
    if raw is None or len(kinds) != 1 or not kinds <= {"torch.float32", "torch.float64"}:
        raise NotKnownError("a torch network of numbers of this kind is not known")
    unit = SINGLE if kinds == {"torch.float32"} else DOUBLE
    return _stacked([_of_torch(part) for part in model], raw.scores, size, unit)


def _of_torch(part: Any) -> Part:
    if is_kind(part, "torch", "Linear"):
        weights = part.weight.detach().cpu().numpy().astype(np.float64).T
        bias = np.zeros(weights.shape[1]) if part.bias is None else part.bias.detach().cpu().numpy()
        return Dense(weights, bias.astype(np.float64))
    if is_kind(part, "torch", "Softmax") and part.dim not in (1, -1):
        raise NotKnownError("a torch network of numbers of this kind is not known")
    for kind, word in {"ReLU": "relu", "Sigmoid": "sigmoid", "Softmax": "softmax", "Identity": ""}.items():
        if is_kind(part, "torch", kind):
            return word
    raise NotKnownError(f"the layer {type(part).__name__} of a torch network is not known")


# --- ONNX -------------------------------------------------------------------------------------------------------------


def read_onnx(model: Any, size: Matrix) -> Network | Additive:
    """Read an ONNX graph of linear layers and rectified units, as `load_model` has loaded it."""
    try:
        import onnx
    except ImportError as error:
        raise NotKnownError("an ONNX graph is read with the package onnx, which is not installed") from error
    if not model.path or len(model.session.get_inputs()) != 1:
        raise NotKnownError("an ONNX graph of several inputs is not known")
    graph = onnx.load(Path(model.path)).graph
    numbers = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    if any(numbers[name].dtype != np.float32 for name in numbers):
        raise NotKnownError("an ONNX graph of numbers of this kind is not known")
    given = next(one.name for one in graph.input if one.name not in numbers)
    parts = _of_graph(graph, given, numbers)

    def said(columns: Matrix) -> Any:
        entry = model.session.get_inputs()[0]
        return model.session.run(None, {entry.name: columns.astype(np.float32)})[0]

    return _stacked([*parts], said, size, SINGLE)


def _of_graph(graph: Any, given: str, numbers: dict[str, Any]) -> Iterator[Part]:
    """Yield the layers of a graph whose nodes follow one another."""
    dense: Dense | None = None
    for node in graph.node:
        how = {one.name: one.i if one.type == 2 else one.f for one in node.attribute if one.type in (1, 2)}
        others = [numbers[name].astype(np.float64) for name in node.input if name in numbers]
        if [name for name in node.input if name not in numbers] != [given]:
            raise NotKnownError("an ONNX graph whose nodes do not follow one another is not known")
        given = node.output[0]
        if dense is not None and node.op_type == "Add":
            dense = dense._replace(bias=dense.bias + others[0])
            continue
        if dense is not None:
            yield dense
            dense = None
        if node.op_type == "MatMul" and node.input[1] in numbers:
            dense = Dense(others[0], np.zeros(others[0].shape[1]))
        elif node.op_type == "Gemm" and node.input[1] in numbers and not how.get("transA"):
            weights = how.get("alpha", 1.0) * (others[0].T if how.get("transB") else others[0])
            bias = how.get("beta", 1.0) * others[1] if len(others) > 1 else 0.0
            dense = Dense(weights, np.zeros(weights.shape[1]) + bias)
        elif node.op_type in ("Relu", "Sigmoid", "Softmax") and how.get("axis", 1) in (1, -1):
            yield node.op_type.lower()
        elif node.op_type != "Identity":
            raise NotKnownError(f"the node {node.op_type} of an ONNX graph is not known")
    if graph.output[0].name != given:
        raise NotKnownError("an ONNX graph whose first output is not its last node's is not known")
    if dense is not None:
        yield dense
