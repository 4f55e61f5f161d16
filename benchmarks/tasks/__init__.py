"""Small tasks with hidden tests, one folder each: `task.toml`, `files/`, `hidden/` and `solution.patch`."""
