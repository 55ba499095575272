# SPDX-License-Identifier: Apache-2.0
"""What a long call shows of how far it is."""
from __future__ import annotations

import contextlib
import sys
from typing import Callable, Iterator, Union

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


@contextlib.contextmanager
def shown(progress: Progress, what: str) -> Iterator[Callable[[int, int], object] | None]:
    """For `with`: the callable that a call of the compiled part tells of its progress, or None."""
    if progress is None or progress is False:
        yield None
    elif progress is not True:
        if not callable(progress):
            raise TypeError(f"progress: expected True, False or a callable, not {type(progress).__name__}")
        yield progress
    else:
        try:
            own = _Bar(what)
        except ImportError:  # tqdm is optional
            own = _Line()
        with contextlib.closing(own):
            yield own
