"""The ops that a model is made of, one file each, and the backends that run them.

An op file holds its mathematics, its shapes and a plain torch reference; `ops.py` names the ops a model may call and
`backend.py` decides once, at start, who runs them. Knows nothing of requests, scheduling or HTTP.
"""
