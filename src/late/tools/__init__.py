"""One module a tool, and the runner that is the only way to them."""
