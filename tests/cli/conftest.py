from tests.config.conftest import free_port

__all__ = ["free_port"]
