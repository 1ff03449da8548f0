"""The serving runtime: an OpenAI-compatible server over its own paged-KV engine. `docs/architecture.md` walks a request through it."""
