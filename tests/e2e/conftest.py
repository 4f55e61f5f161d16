"""Fixtures for tests with real processes."""

from support.model import llama_server, model_path, server_binary

__all__ = ["llama_server", "model_path", "server_binary"]
