"""Measurements. They report, with a ratio against something known in the same run; nothing here fails on wall time."""
