"""Settings, paths and prompts."""
