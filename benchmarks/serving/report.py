"""From the lines of a run to what people read: medians over rounds, a table, a bar plot.

Pure but for `write_report`, which writes serving.json, serving.md and serving.png into one folder. Knows no server by
name except the one that ratios are taken against.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.figure import Figure

Line = dict[str, Any]  # one workload on one server in one round, as `load` prints it, plus server, round and start_s

BASELINE = "vllm"
MEDIANS = ("out_tok_s", "ttft_p50", "ttft_p90", "tpot_p50", "e2e_p50", "sec", "start_s")
SUMS = ("errors", "short")
COLUMNS = {
    "workload": "workload",
    "server": "server",
    "out_tok_s": "out tok/s",
    "ratio": f"ratio to {BASELINE}",
    "ttft_p50": "TTFT p50 s",
    "ttft_p90": "TTFT p90 s",
    "tpot_p50": "TPOT p50 ms",
    "errors": "errors",
    "short": "short",
    "start_s": "start s",
    "rounds": "rounds",
}


def summarize(lines: Sequence[Line]) -> list[Line]:
    """One row for each workload and server, in the order they first ran: medians, sums, the ratio to the baseline."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for workload in dict.fromkeys(line["workload"] for line in lines):
        for line in sorted((line for line in lines if line["workload"] == workload), key=lambda line: line["round"]):
            groups.setdefault((workload, line["server"]), []).append(line)
    rows = [_merge(workload, server, group) for (workload, server), group in groups.items()]
    speeds = {(row["workload"], row["server"]): row["out_tok_s"] for row in rows}
    for row in rows:
        baseline = speeds.get((row["workload"], BASELINE))
        row["ratio"] = round(row["out_tok_s"] / baseline, 2) if baseline else None
    return rows


def _merge(workload: str, server: str, group: Sequence[Line]) -> Line:
    row: Line = {"workload": workload, "server": server, "rounds": len(group)}
    for name in MEDIANS:
        values = [line[name] for line in group if line[name] is not None]
        row[name] = median(values) if values else None
    for name in SUMS:
        row[name] = sum(line[name] for line in group)
    return row


def write_report(record: Mapping[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "serving.json").write_text(json.dumps(record, indent=1) + "\n")
    (folder / "serving.md").write_text(render_table(record))
    draw_bars(record["summary"], record["machine"], folder / "serving.png")


def render_table(record: Mapping[str, Any]) -> str:
    head = [
        "# Serving: Octavo and its peers",
        "",
        f"- machine: {record['machine']}",
        f"- peers: {', '.join(record['peers'])}",
        f"- command: `{record['command']}`",
        "- each figure is the median over rounds; errors and short answers are summed; a ratio above 1 is faster",
        "",
        "| " + " | ".join(COLUMNS.values()) + " |",
        "|" + "|".join(["---", "---", *["---:"] * (len(COLUMNS) - 2)]) + "|",
    ]
    body = ["| " + " | ".join(_cell(name, row[name]) for name in COLUMNS) + " |" for row in record["summary"]]
    failures = ["", "Failed:", "", *(f"- {failure}" for failure in record["failures"])] if record["failures"] else []
    return "\n".join([*head, *body, *failures]) + "\n"


def _cell(column: str, value: object) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    if column == "tpot_p50":
        return f"{value * 1000:.1f}"
    return f"{value:.1f}" if column in ("out_tok_s", "start_s") else f"{value:.2f}"


def draw_bars(rows: Sequence[Line], machine: str, path: Path) -> None:
    """One panel for each workload, since their scales differ tenfold; one bar for each server."""
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    servers = list(dict.fromkeys(row["server"] for row in rows))
    if not workloads:
        return
    colors = dict(zip(sorted(servers), ("#4c72b0", "#dd8452", "#8c8c8c", "#c4c4c4"), strict=False))
    figure = Figure(figsize=(2.6 * len(workloads) + 1, 4))
    panels = figure.subplots(1, len(workloads), squeeze=False)
    for panel, workload in zip(panels[0], workloads, strict=True):
        mine = [row for row in rows if row["workload"] == workload]
        names = [row["server"] for row in mine]
        bars = panel.bar(names, [row["out_tok_s"] for row in mine], color=[colors[name] for name in names])
        panel.bar_label(bars, [_bar_label(row) for row in mine], padding=2, fontsize=8)
        panel.set_title(workload)
        panel.margins(y=0.18)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(axis="x", labelsize=8)
    panels[0][0].set_ylabel("output tokens per second")
    figure.suptitle(f"Serving SmolLM2-135M bf16: {machine}", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def _bar_label(row: Line) -> str:
    ratio = f"\n{row['ratio']:.2f}x" if row["ratio"] is not None else ""
    return f"{row['out_tok_s']:.0f}{ratio}"
