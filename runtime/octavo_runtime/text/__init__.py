"""Strings on one side, token ids on the other: tokenizer, chat template, incremental text, stop strings. No HTTP."""
