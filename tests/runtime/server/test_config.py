from octavo_runtime.server.config import ServerConfig


def test_first_name_is_the_reported_one():
    assert ServerConfig(("a", "b")).model_name == "a"
