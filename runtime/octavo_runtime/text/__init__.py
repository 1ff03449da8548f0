"""Strings on one side, token ids on the other: tokenizer, chat template, incremental text, stop strings. Knows no torch and no HTTP."""
