# SPDX-License-Identifier: Apache-2.0
"""Tables: columns of numpy arrays that become a pandas DataFrame on request."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

if TYPE_CHECKING:
    import pandas


def joined(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Columns of several tables as one, names numbered anew where they differ."""
    if len(tables) == 1:
        return dict(tables[0])
    import numpy

    result: dict[str, Any] = {}
    for column in tables[0]:
        if column.endswith("_names"):
            continue
        parts = [numpy.asarray(table[column]) for table in tables]
        if f"{column}_names" in tables[0]:
            numbers: dict[str, int] = {}
            for i, table in enumerate(tables):
                new = [numbers.setdefault(name, len(numbers)) for name in table[f"{column}_names"]]
                parts[i] = numpy.asarray(new, dtype=parts[i].dtype)[parts[i]]
            result[f"{column}_names"] = list(numbers)
        result[column] = numpy.concatenate(parts)
    return result


class Table(Mapping[str, Any]):
    """Columns of equal length, by name.

    A column of names (`user`, `vc`, ...) holds their numbers; `names(column)` is the list that they index. Number 0 is the
    empty name: unknown.

    Parameters
    ----------
    columns : dict
        Column name to array or list; `X_names` holds the names of column `X`.
    """

    def __init__(self, columns: Mapping[str, Any]):
        self._names = {name[:-len("_names")]: list(values) for name, values in columns.items() if name.endswith("_names")}
        self._columns = {name: values for name, values in columns.items() if not name.endswith("_names")}

    def __getitem__(self, column: str) -> Any:
        return self._columns[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"Table of {self.rows} rows: {', '.join(self._columns)}"

    def _repr_html_(self) -> str:
        from .shown import first_rows

        return first_rows(self)

    def has_names(self, column: str) -> bool:
        """True where the column holds numbers of names."""
        return column in self._names

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self._columns.values()), ()))

    def names(self, column: str) -> list[str]:
        """The names that the numbers of `column` index.

        Raises
        ------
        KeyError
            The column holds no numbers of names.
        """
        return self._names[column]

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a DataFrame; columns of names become categories. Numeric columns share their memory where pandas
        does not need blocks of its own.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        import pandas

        data: dict[str, Any] = {}
        for name, values in self._columns.items():
            if name in self._names:
                values = pandas.Categorical.from_codes(values, categories=self._names[name])
            data[name] = values
        return pandas.DataFrame(data, copy=False)
