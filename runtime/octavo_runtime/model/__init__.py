"""Models and their weights: config.json or GGUF -> ModelConfig -> a forward that calls octavo_kernels ops.

Read in this order: config.py, weights.py / gguf_weights.py, layers.py, decoder.py, one architecture file, registry.py.
"""
