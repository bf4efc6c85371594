"""Write a dataset, its factuals and its two models as files that every environment can read (see speed_model.py).

name  ->  write_problem  ->  FOLDER/encoding.npz, network.npz, forest.onnx, *.rows.npz
"""

import numpy as np

from speed_model import FileModel

N_TREES = 100
LEAST_IN_LEAF = 5
SEED = 0
TARGET = 1


def write_problem(name, folder, data_dir=None, most_rows=200):
    """Train both models on a dataset at full size, and write everything, once per folder."""
    if (folder / "done").exists():
        return
    from onbmacf.bench.datasets import load_task
    from onbmacf.bench.network import trained_network

    task = load_task(name, data_dir)
    folder.mkdir(parents=True, exist_ok=True)
    write_encoding(task, folder / "encoding.npz")
    write_network(trained_network(task, SEED), folder / "network.npz")
    write_forest(task, folder / "forest.onnx")
    for kind in ("network", "forest"):
        write_rows(task, FileModel(folder, kind), folder / f"{kind}.rows.npz", most_rows)
    (folder / "done").touch()


def numbers_of(task):
    """Return the table as numbers: categories as codes."""
    return task.space.form.numbers(task.table)


def write_encoding(task, path):
    """Write the encoding from numbers to the inputs of the models."""
    n_levels = [len(f.levels) if f.kind == "categorical" else 0 for f in task.schema.features]
    np.savez(path, low=task.space.low, span=task.space.span, n_levels=np.array(n_levels))


def write_network(network, path):
    """Write the layers of a torch network as arrays."""
    layers = [layer for layer in network.module if hasattr(layer, "weight")]
    arrays = {f"w{k}": layer.weight.numpy().T for k, layer in enumerate(layers)}
    np.savez(path, **arrays, **{f"b{k}": layer.bias.numpy() for k, layer in enumerate(layers)})


def write_forest(task, path):
    """Train a forest of 100 trees, write it as an ONNX tree ensemble, and return it."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(N_TREES, min_samples_leaf=LEAST_IN_LEAF, random_state=SEED, n_jobs=-1)
    forest.fit(task.Z, task.y)
    path.write_bytes(onnx_of(forest, task.Z.shape[1]).SerializeToString())
    return forest


def onnx_of(forest, width):
    """Return a forest as an ONNX model with the input Z and the output probabilities."""
    from onnx import TensorProto, helper

    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["Z"],
        ["label", "probabilities"],
        domain="ai.onnx.ml",
        post_transform="NONE",
        classlabels_int64s=[0, 1],
        **tree_arrays([estimator.tree_ for estimator in forest.estimators_]),
    )
    graph = helper.make_graph(
        [node],
        "forest",
        [helper.make_tensor_value_info("Z", TensorProto.FLOAT, [None, width])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, [None]),
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 2]),
        ],
    )
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def tree_arrays(trees):
    """Return scikit-learn's trees as the lists that ONNX needs: one entry per node, leaves with their votes."""
    counts = [tree.node_count for tree in trees]
    ids = np.repeat(np.arange(len(trees)), counts)
    nodes = np.concatenate([np.arange(count) for count in counts])
    left, right = (np.concatenate([getattr(t, side) for t in trees]) for side in ("children_left", "children_right"))
    values = np.concatenate([tree.value[:, 0] / tree.value[:, 0].sum(axis=1, keepdims=True) for tree in trees])
    leaf = left < 0
    return {
        "nodes_treeids": ids.tolist(),
        "nodes_nodeids": nodes.tolist(),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_featureids": np.where(leaf, 0, np.concatenate([t.feature for t in trees])).tolist(),
        "nodes_values": float32_below(np.concatenate([t.threshold for t in trees])).tolist(),
        "nodes_truenodeids": np.where(leaf, 0, left).tolist(),
        "nodes_falsenodeids": np.where(leaf, 0, right).tolist(),
        "class_treeids": np.repeat(ids[leaf], 2).tolist(),
        "class_nodeids": np.repeat(nodes[leaf], 2).tolist(),
        "class_ids": np.tile([0, 1], leaf.sum()).tolist(),
        "class_weights": (values[leaf] / len(trees)).ravel().tolist(),
    }


def float32_below(thresholds):
    """Return the largest float32 not above each threshold: `x <= t` then gives the same result for every float32 x."""
    near = thresholds.astype(np.float32)
    return np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near)


def write_rows(task, model, path, most_rows):
    """Write the table and the rows to explain: the first rows, in file order, without the target label."""
    numbers = numbers_of(task)
    np.savez_compressed(
        path,
        numbers=numbers,
        y=task.y,
        factuals=np.flatnonzero(model.predict(numbers) != TARGET)[:most_rows],
        kinds=np.array([feature.kind for feature in task.schema.features]),
        n_values=np.array([len(feature.levels or ()) for feature in task.schema.features]),
    )
