"""Which weights a `spec.model` means and how much memory they need, found before a pod is asked for.

In the order that a model passes through: `uri`, `hub` (over `http_get`), `files`, `weight_facts` (from
`safetensors_header` or `gguf_header` to a `shape`), `resolution`; then `devices` and `memory_plan`. Only the hub's client
and what reads through it wait for anything; all else is pure.
"""
