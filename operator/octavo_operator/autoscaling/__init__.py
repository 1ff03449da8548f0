"""How many replicas `scaling.mode: Auto` wants: scrape the pods, decide on what they wait for and how full they are.

In the order of a pass: `scraper` (the only I/O), `metrics_text`, `samples`, `policy`, `decisions`; `simulator` plays
the policy against recorded traffic.
"""
