"""May this run? Decided before anything does."""
