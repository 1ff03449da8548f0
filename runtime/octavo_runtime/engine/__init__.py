"""The engine: pure Python, no torch and no aiohttp. Decides which sequences run in the next step and where their K and V live.

Read in this order: sampling_params, messages (what comes in and goes out), sequence, block_pool, prefix_cache,
block_manager, budget, scheduler, plan (what the model is asked), beam, llm_engine, channel, core_loop, async_llm_engine.
"""
