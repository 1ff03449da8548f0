"""The Kubernetes operator of Octavo: turns an `LLMDeployment` into serving pods and keeps them right.

The walk of one: a watch event (`handlers`) or a list (`relist`) -> `intake` -> `cache`, and by `wakeup` a key in the
`work_queue`. The leader's workers take it to `reconcile`: `observe` (`views`) -> `effective`, `model`, `rollout`,
`autoscaling` decide -> `desired` builds -> `apply` writes what differs -> `status` judges and reports. What the cluster
makes of it comes back as events: a new walk from the start.
"""
