"""Writes the annotated file tree of README.md from the first sentence of each file; `--check` only compares.

The tree stands between two marker lines. Folders and files are listed in reading order where a package states one
(`READING_ORDER`), else by name. Knows Python docstrings and leading comments.
"""

import argparse
import ast
import re
import sys
from pathlib import Path

BEGIN, END = "<!-- tree: make format -->", "<!-- /tree -->"
ROOTS = ("operator", "runtime", "kernels", "benchmarks", "e2e", "scripts")
READING_ORDER = (
    "operator", "runtime", "kernels", "settings.py", "main.py", "handlers.py", "watching.py", "relist.py", "intake.py",
    "cache.py", "wakeup.py", "work_queue.py", "leader.py", "reconcile.py", "api.py", "observe.py", "views.py", "observed.py",
    "preparing.py", "revision.py", "effective.py", "replica_count.py", "rolling.py", "effects.py", "apply.py",
    "situations.py", "launcher.py", "engine_process.py",
    "server", "text", "engine", "worker", "model",
    "app.py", "middleware.py", "admission.py", "body.py", "schema.py", "chat.py", "completions.py", "params.py", "prompts.py",
    "generation.py", "sampling_params.py", "messages.py", "async_llm_engine.py", "channel.py", "core_loop.py",
    "llm_engine.py", "sequence.py", "scheduler.py", "budget.py", "block_manager.py", "block_pool.py", "prefix_cache.py",
    "plan.py", "worker.py", "model_runner.py", "inputs.py", "registry.py", "loader.py", "layers.py", "decoder.py",
    "ops.py", "backend.py",
)  # fmt: skip
SOURCE_SUFFIXES = {".py", ".cpp", ".h", ".sh"}


def first_sentence(path: Path) -> str:
    """What a file says of itself, in one line."""
    text = path.read_text()
    if path.suffix == ".py":
        words = ast.get_docstring(ast.parse(text)) or ""
    else:
        lines = [line.lstrip("#/ ") for line in text.splitlines() if line.startswith(("# ", "// "))]
        words = " ".join(lines[:3])
    words = " ".join(words.split("\n\n")[0].split())
    return re.split(r"(?<=[.;])\s", words)[0].rstrip(".;")


def position(path: Path) -> tuple[bool, int, str]:
    """Files before folders, named ones in their order."""
    name = path.name
    rank = READING_ORDER.index(name) if name in READING_ORDER else len(READING_ORDER)
    return path.is_dir(), rank, name


def lines_of(folder: Path, depth: int) -> list[str]:
    """The tree below `folder`."""
    lines = []
    for path in sorted(folder.iterdir(), key=position):
        if path.name.startswith((".", "__pycache__")) or path.name == "results":
            continue
        label = "  " * depth + path.name
        if path.is_dir():
            below = lines_of(path, depth + 1)
            if below:
                init = path / "__init__.py"
                lines.append(f"{label + '/':<44}{first_sentence(init) if init.exists() else ''}".rstrip())
                lines += below
        elif path.suffix in SOURCE_SUFFIXES and path.name != "__init__.py":
            lines.append(f"{label:<44}{first_sentence(path)}".rstrip())
    return lines


def tree() -> str:
    """The whole block between the markers."""
    lines = []
    for root in ROOTS:
        lines.append(f"{root}/")
        lines += lines_of(Path(root), 1)
    return "```\n" + "\n".join(lines) + "\n```"


def main() -> int:
    """0 when README.md has the tree of the disk (or was given it)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    readme = Path("README.md")
    text = readme.read_text()
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    wanted = f"{head}{BEGIN}\n{tree()}\n{END}{tail}"
    if wanted == text:
        return 0
    if check:
        sys.stderr.write("README.md: the file tree differs from the disk; run `make format`\n")
        return 1
    readme.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
