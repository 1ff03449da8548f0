"""How one revision replaces another: pure decisions over what was seen, no I/O and no clock.

In the order of a pass: `capacity` (what fits), `strategy` (surge or in place), `revisions` (which revision to move to),
`planner` (replicas of each revision, pods to drain), `verdict` (has the rollout failed).
"""
