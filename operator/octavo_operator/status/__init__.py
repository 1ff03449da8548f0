"""What `.status` says: a list of checks on what was seen, and one report.

In the order of a pass: `signals` (a pod), `creation` (a refused pod), `storage` (claim, downloader) give findings;
`severity` chooses the worst; `judge` makes conditions, counts and `phase` of them; `report` writes the whole status;
`transitions` says which Events a change is worth. All pure: `now` is in the observation.
"""
