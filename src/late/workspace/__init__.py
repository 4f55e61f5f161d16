"""Files, ignore rules, search, outlines and worktrees."""
