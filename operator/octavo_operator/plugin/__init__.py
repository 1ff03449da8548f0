"""`kubectl octavo`: what a person asks of a cluster that serves models.

`why` gives the root cause, `plan -f FILE` sizes a manifest without a cluster, `status` and `top` show what runs,
`drain POD` has one pod replaced. One module per verb; `cluster` is the way to the API server.
"""
