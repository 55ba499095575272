# SPDX-License-Identifier: Apache-2.0
"""Features of jobs of one's own, beside those that the environment observes."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence, Union

from . import _core

if TYPE_CHECKING:
    import numpy

Features = Union[Sequence[str], Callable[[Mapping[str, Any]], Any]]


def feature_table(features: Features, columns: Mapping[str, Any]) -> numpy.ndarray:
    """What the features of each job are: [jobs + 1, features] in single precision, the last row 0 for "no job".

    Parameters
    ----------
    features : sequence of str, or callable
        Names of numeric columns of a trace, or a function of all of them that gives [jobs, features] or [jobs].
    columns : dict of str to array
        As `Trace.columns()` without true run times. Unknown numbers, NaN, become 0.

    Raises
    ------
    Error
        There is no such column, or the function gave another shape.
    """
    import numpy

    jobs = len(columns["submit_s"])
    if callable(features):
        table = numpy.asarray(features(columns), dtype=numpy.float32)
        if table.ndim == 1:
            table = table[:, None]
    else:
        known = sorted(name for name in columns if not name.endswith("_names"))
        for name in features:
            if name not in known:
                raise _core.Error(f"features: no column {name!r} of jobs; expected some of {', '.join(known)}")
        table = numpy.stack([numpy.asarray(columns[name], dtype=numpy.float32) for name in features], axis=1)
    if table.ndim != 2 or table.shape[0] != jobs or table.shape[1] == 0:
        raise _core.Error(f"features: expected {jobs} rows, one for each job, not an array of shape {table.shape}")
    table = numpy.nan_to_num(table, nan=0.0)
    return numpy.concatenate([table, numpy.zeros((1, table.shape[1]), numpy.float32)])


def check_features(features: Any) -> Any:
    """`features` as it can be kept.

    Raises
    ------
    Error
        It is neither a function nor several names.
    """
    if features is None or callable(features):
        return features
    several = isinstance(features, (list, tuple)) and len(features) > 0
    if not several or not all(isinstance(name, str) for name in features):
        raise _core.Error("features: expected names of columns, or a function of them")
    return tuple(features)
