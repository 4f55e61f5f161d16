"""`late`: a local-first coding agent for the terminal. Importing the package costs nothing."""

__version__ = "0.1.0"
