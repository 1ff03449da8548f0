"""The `octavo` command: one file per verb, `flags.py` for what they share. `__main__.py` calls `main.run`."""
