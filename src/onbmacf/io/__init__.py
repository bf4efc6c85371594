"""Tables and models from files: what notebooks, services and the command line share.

    read_table(path)           ->  a DataFrame
    load_model(source, table)  ->  a model for ONBMACF.fit
    RemoteModel(url)           ->  a model that a server runs
    train_network(table, y)    ->  a small network, where there is no model yet
    train_trees(table, y)      ->  boosted trees, where values are missing, too

Every name is loaded on first use, so importing this package imports nothing heavy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onbmacf.io.models import load_model
    from onbmacf.io.remote import RemoteModel, RemoteRowsError
    from onbmacf.io.tables import read_table
    from onbmacf.io.trained import TrainedModel, train_network, train_trees

_HOME = {
    "RemoteModel": "onbmacf.io.remote",
    "RemoteRowsError": "onbmacf.io.remote",
    "TrainedModel": "onbmacf.io.trained",
    "load_model": "onbmacf.io.models",
    "read_table": "onbmacf.io.tables",
    "train_network": "onbmacf.io.trained",
    "train_trees": "onbmacf.io.trained",
}

__all__ = ["RemoteModel", "RemoteRowsError", "TrainedModel", "load_model", "read_table", "train_network", "train_trees"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'onbmacf.io' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
