# SPDX-License-Identifier: Apache-2.0
"""What a long call shows of how far it is."""
from __future__ import annotations

import sys
from typing import Callable, Union

Progress = Union[bool, Callable[[int, int], object]]


class _Line:
    """A line on standard error that is written anew: how much is done, of how much."""

    def __init__(self) -> None:
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        sys.stderr.write(f"\r{done:,} of {total:,} {100 * done / max(total, 1):3.0f} %")
        sys.stderr.flush()
        self._shown = True

    def close(self) -> None:
        if self._shown:
            sys.stderr.write("\n")


class _Bar:
    """The bar of tqdm, in a notebook as a widget."""

    def __init__(self, what: str) -> None:
        from tqdm.auto import tqdm

        self._bar, self._done = tqdm(total=0, unit=" " + what, unit_scale=True), 0

    def __call__(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.update(done - self._done)
        self._done = done

    def close(self) -> None:
        self._bar.close()


class shown:
    """For `with`: the callable that a call of the compiled part tells of its progress, or None."""

    def __init__(self, progress: Progress, what: str) -> None:
        self._progress, self._what, self._own = progress, what, None

    def __enter__(self) -> Callable[[int, int], object] | None:
        if self._progress is None or self._progress is False:
            return None
        if self._progress is not True:
            if not callable(self._progress):
                raise TypeError(f"progress: expected True, False or a callable, not {type(self._progress).__name__}")
            return self._progress
        try:
            self._own = _Bar(self._what)
        except ImportError:  # tqdm is optional
            self._own = _Line()
        return self._own

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.close()
