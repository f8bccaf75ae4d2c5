"""Rows for whoever reads Arrow: pandas, polars, pyarrow, DuckDB."""

from __future__ import annotations

from typing import Any

from . import _fairlift


class Tabular:
    """What has rows. Reads as Arrow (``__arrow_c_stream__``), so nothing is copied, and no library is needed unless it is asked for."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise NotImplementedError

    def to_arrow(self) -> Any:
        """As a ``pyarrow.Table``."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> Any:
        """As a ``polars.DataFrame``."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> Any:
        """As a ``pandas.DataFrame``; by pyarrow, which pandas needs for it."""
        return self.to_arrow().to_pandas()


class Table(Tabular):
    """Columns of results, or of a trace."""

    def __init__(self, native: _fairlift.Table) -> None:
        self._native = native

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._native.shape

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._native.columns

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<fairlift.Table of {rows} rows and {columns} columns>"


class Shown(Tabular):
    """Results with rows and a page: in a notebook it shows as the page."""

    @property
    def rows(self) -> Table:
        """The results, a row each."""
        raise NotImplementedError

    def page(self) -> str:
        """The results as one HTML page."""
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        # A page within a notebook's: its styles stay its own.
        from html import escape

        return f'<iframe srcdoc="{escape(self.page())}" style="width:100%;height:40rem;border:0"></iframe>'
