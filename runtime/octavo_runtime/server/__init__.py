"""HTTP in, HTTP out: OpenAI's API as vLLM serves it, over any engine and text layer that fit `interfaces.py`.

Read in the order a request passes: `app.py`, `middleware.py`, `body.py`, `schema.py`, `chat.py` or `completions.py`,
`prompts.py`, `params.py`, `generation.py`, then `chunks` and `sse.py` or one JSON body. Knows no torch.
"""
