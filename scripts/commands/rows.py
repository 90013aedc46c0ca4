"""Rows for people: a table where the terminal has room for it, and else a block for each row, in
which ids stand whole and can be copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fairlane_client.commands.output import console


def print_rows(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
    """columns: the names to show, in their order. In a pipe there is room for any table."""
    out = console()
    table = Table(*columns)
    for row in rows:
        table.add_row(*(Text(row.get(column, "")) for column in columns))
    if Measurement.get(out, out.options.update(width=1_000_000), table).maximum <= out.width:
        out.print(table)
        return
    for number, row in enumerate(rows):
        if number:
            out.print()
        out.print(_block(columns, row))


def _block(columns: Sequence[str], row: Mapping[str, str]) -> Table:
    """Name and value of each column that has one."""
    block = Table(box=None, show_header=False, pad_edge=False)
    block.add_column(style="bold", no_wrap=True)
    block.add_column(overflow="fold")
    for column in columns:
        if row.get(column):
            block.add_row(column, Text(row[column]))
    return block
