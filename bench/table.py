"""Prints tables: a heading, columns, and a note below that explains the numbers."""


class Table:
    """Rows of words and numbers; the first column is left-aligned, the others right-aligned."""

    def __init__(self, title: str, columns: list[str]):
        self.title, self.columns = title, columns
        self.rows: list[list[str]] = []
        self.notes: list[str] = []

    def row(self, *cells: object) -> None:
        self.rows.append([f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells])

    def note(self, text: str) -> None:
        self.notes.append(text)

    def goal(self, text: str, is_reached: bool) -> None:
        """A note on a goal, and whether it is reached."""
        self.note(f"{text}: {'reached' if is_reached else 'not reached'}.")

    def goal_of_each(self, text: str, missed: list[str]) -> None:
        """A note on a goal of each row, and which rows miss it."""
        self.note(f"{text}: {'not reached by ' + ', '.join(missed) if missed else 'reached'}.")

    def text(self) -> str:
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]

        def format_line(cells: list[str]) -> str:
            first = cells[0].ljust(widths[0])
            return "  ".join([first] + [c.rjust(w) for c, w in zip(cells[1:], widths[1:])]).rstrip()

        rule = "  ".join("-" * width for width in widths)
        body = [format_line(self.columns), rule] + [format_line(row) for row in self.rows]
        return "\n".join([self.title, ""] + body + [""] + self.notes + [""])

    def value(self) -> dict:
        """The same for JSON."""
        return {
            "title": self.title,
            "columns": self.columns,
            "rows": self.rows,
            "notes": self.notes,
        }
