"""One pass over the partitions of a Dask DataFrame: on a cluster's workers, or on threads of this process.

work, partitions, what each gets beside its rows  ->  each_part  ->  number and result of each, as it is done
name, arrays that a pass makes  ->  Kept.arrays  ->  these arrays, or those that an earlier run has kept

Few partitions are read at a time, and a result is let go once it is taken: what a pass needs does not grow with the
table. Which one is done first is left open, so what is made of the results must not depend on their order.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from onbmacf._base.checks import error_words
from onbmacf._base.executor import Parcel, call, check_client, cores, pickled, send, watched
from onbmacf._base.files import write_atomically
from onbmacf.errors import ModelError, OnbmacfError, StoreError, TableError

Work = Callable[[tuple[pd.DataFrame, Any]], Any]  # a partition, and what it gets beside its rows
Arrays = dict[str, NDArray[Any]]
AHEAD = 2  # partitions per thread of a cluster that are under way: one is read while another is worked on


def each_part(
    work: Work, parts: Sequence[Any], given: Sequence[Any], client: Any, describe: str, threads: int | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield the number of each partition and what `work` makes of it; an error or Ctrl-C cancels the others."""
    source = _Threads(work, threads or cores()) if client is None else _Cluster(work, client)
    return watched(_as_done(source, parts, given), describe, len(parts))  # type: ignore[return-value]


def _as_done(source: Any, parts: Sequence[Any], given: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    left = iter(enumerate(zip(parts, given, strict=True)))
    under_way: dict[Any, int] = {}
    try:
        while True:
            while len(under_way) < source.most and (following := next(left, None)) is not None:
                under_way[source.submit(*following[1])] = following[0]
            if not under_way:
                return
            for future in source.wait(list(under_way)):
                number = under_way.pop(future)
                try:
                    result = future.result()
                except Exception as error:
                    raise _in_words(number, error) from error
                del future
                yield number, result
    finally:
        source.close(list(under_way))


def _in_words(number: int, error: Exception) -> OnbmacfError:
    """Return an error that says which partition it is about."""
    if isinstance(error, OnbmacfError):
        return type(error)(f"partition {number}: {error}")
    if type(error).__name__ == "KilledWorker":
        return ModelError(
            f"partition {number}: workers died each time they worked on it. Give them more memory, smaller partitions "
            "(table.repartition), or see what the model does there."
        )
    return TableError(f"partition {number} cannot be read: {error_words(error)}")


@dataclass(frozen=True)
class Kept:
    """Where the results of finished passes lie, so that a fit that was stopped goes on; nowhere without a folder."""

    folder: Path | None
    mark: str  # of the table, the options and the model: what another fit has kept is left alone

    def arrays(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return what a pass makes, from the folder if it is there."""
        if self.folder is None:
            return make()
        path = self.folder / f"{self.mark}-{name}.npz"
        try:
            with np.load(path, allow_pickle=False) as kept:
                return dict(kept)
        except FileNotFoundError:
            found = make()
        except (OSError, ValueError, BadZipFile) as error:
            raise StoreError(f"{path} cannot be read: {error_words(error)}. Delete it to make it again.") from error
        packed = BytesIO()
        np.savez(packed, allow_pickle=False, **found)
        write_atomically(path, packed.getvalue())
        return found


class _Threads:
    """Threads of this process, each with one partition."""

    def __init__(self, work: Work, threads: int) -> None:
        self._work, self.most, self._pool = work, threads, futures.ThreadPoolExecutor(threads)

    def submit(self, part: Any, given: Any) -> Any:
        return self._pool.submit(partial(_read, self._work, part), given)

    def wait(self, under_way: list[Any]) -> list[Any]:
        return list(futures.wait(under_way, return_when=futures.FIRST_COMPLETED).done)

    def close(self, _: list[Any]) -> None:
        self._pool.shutdown(cancel_futures=True)


def _read(work: Work, part: Any, given: Any) -> Any:
    return work((part.compute(scheduler="synchronous"), given))


class _Cluster:
    """A cluster's workers. `work` is sent to each once."""

    def __init__(self, work: Work, client: Any) -> None:
        check_client(client)
        try:
            parcel = Parcel(packed=pickled(work))
        except Exception as error:
            raise ModelError(f"the model cannot be sent to the workers: {error_words(error)}") from error
        self._sent = send(client, parcel)
        self._client, self._done = client, import_module("distributed").as_completed(loop=client.loop)
        self.most = AHEAD * sum(client.nthreads().values())

    def submit(self, part: Any, given: Any) -> Any:
        future = self._client.submit(call, self._sent, (self._client.compute(part), given), pure=False)
        self._done.add(future)
        return future

    def wait(self, _: list[Any]) -> list[Any]:
        return [next(self._done)]

    def close(self, under_way: list[Any]) -> None:
        if self._client.status == "running":
            self._client.cancel(under_way)
