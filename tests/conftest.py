"""Settings of all property tests: they judge the code, and a machine that does other things too is not its fault."""

from hypothesis import HealthCheck, settings

settings.register_profile("octavo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("octavo")
