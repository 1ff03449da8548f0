"""Bytes for people: `270.0 MiB`, for messages, tables and log lines."""


def size(number: int) -> str:
    """`number` bytes in the largest unit that leaves at least one of it."""
    amount = float(number)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:,.0f} {unit}" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= 1024
    return f"{amount:,.2f} GiB"
