"""The worker: one process's model, cache and step. Nothing is imported here, so that settings need no torch.

Read in this order: config.py, worker.py, model_runner.py, inputs.py, cache_engine.py, sampler.py.
"""
