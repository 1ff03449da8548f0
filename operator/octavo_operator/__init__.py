"""The Kubernetes operator of Octavo: turns an `LLMDeployment` into serving pods and keeps them right.

Empty for now: the operator is built after the runtime that it deploys.
"""
