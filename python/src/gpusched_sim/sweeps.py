# SPDX-License-Identifier: Apache-2.0
"""Sweeps: the replays of a grid, stored as they end."""
from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any, Mapping

from . import _core
from .progress import Progress
from .progress import shown as shown_progress
from .runs import _frame, _keywords, _text

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

    from ._options import SweepOptions


@dataclasses.dataclass(frozen=True)
class Sweep:
    """How a sweep stands.

    Attributes
    ----------
    out : str
        The folder: a database, runs.csv, comparison.csv and manifest.json, from which `report` draws.
    size, done, failed, timeouts : int
        Runs: all, those with figures, those without, those over the time limit.
    stored_before : int
        How many needed not be run, because an earlier call had stored them.
    failures : list of (int, str, str)
        The first few runs without figures: number, what varies, and why.
    """

    out: str
    size: int
    done: int
    failed: int
    timeouts: int
    stored_before: int
    failures: list[tuple[int, str, str]]

    def _repr_html_(self) -> str:
        return self.runs().to_html(max_rows=20)

    def runs(self) -> pandas.DataFrame:
        """runs.csv: a row a run that is stored; what varies, how it ended, and a column a metric."""
        return self._table("runs.csv")

    def comparison(self) -> pandas.DataFrame:
        """comparison.csv: differences of policies over seeds or days with intervals. Empty where nothing can be compared."""
        return self._table("comparison.csv")

    def _table(self, name: str) -> pandas.DataFrame:
        with open(os.path.join(self.out, name), encoding="utf-8") as file:
            return _frame(file.read())


def _sweep(sweep: Any, options: Mapping[str, Any], retry: bool, dry_run: bool, progress: Progress = False) -> dict[str, Any]:
    text, file = "", "sweep"
    if isinstance(sweep, Mapping):
        try:
            text = json.dumps(sweep, allow_nan=False, default=os.fspath)
        except (TypeError, ValueError) as error:
            raise _core.Error(f"sweep: expected what JSON can hold, and paths: {error}") from None
    elif isinstance(sweep, (str, os.PathLike)):
        file = str(_text(sweep))
    else:
        raise TypeError(f"sweep: expected a file or a dict, not {type(sweep).__name__}")
    with shown_progress(progress, "runs") as told:
        return _core.sweep(text, file, _keywords(options), bool(retry), dry_run, told)


def sweep(sweep: Mapping[str, Any] | str | os.PathLike, out: str | os.PathLike | None = None, *, retry: bool = False,
          progress: Progress = False, **options: Unpack[SweepOptions]) -> Sweep:
    """Runs every point of a grid on processes of this machine and stores each result as it ends.

    The same call goes on where it was interrupted or killed: what is stored is not run again. `sweep` and `gpusched sweep`
    share folders. Policies are names: a callable lives in one process and is run by `replay` or `evaluate`.

    Parameters
    ----------
    sweep : dict, str or os.PathLike
        What a file of `gpusched sweep` holds, or the file: `{"base": {"trace": "jobs.csv"},
        "grid": {"policy": ["fifo", "las"], "seed": {"from": 1, "to": 5}}}`. Relative paths are of the working folder.
    out : str or os.PathLike, optional
        Folder of the results; by default what the file says.
    retry : bool
        Run again what is stored without figures.
    progress : as of `replay`
        Of the runs that are not stored.
    **options
        Options of `gpusched sweep` by the name of their flag: `threads=0` (a process for each processor; 1 by default),
        `time_limit=600`, `files=True`.

    Returns
    -------
    Sweep

    Raises
    ------
    Error
        Bad input; a folder that another program holds or that cannot be written. A run that fails is no error: `failures`
        tells it.
    KeyboardInterrupt
        What has ended is stored.
    """
    result = _sweep(sweep, dict(options, out=out), retry, False, progress)
    return Sweep(out=result["out"], size=result["runs"], done=result["done"], failed=result["failed"],
                 timeouts=result["timeouts"], stored_before=result["stored_before"], failures=result["failures"])


def sweep_list(sweep: Mapping[str, Any] | str | os.PathLike, out: str | os.PathLike | None = None,
               **options: Unpack[SweepOptions]) -> str:
    """The runs that a sweep stands for, and which of them are stored; checked, but not run.

    Parameters
    ----------
    sweep, out, **options : as of `sweep`

    Returns
    -------
    str
        What `gpusched sweep --dry-run` prints.
    """
    return _sweep(sweep, dict(options, out=out), False, True)["list"]
