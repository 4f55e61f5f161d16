"""The turn loop, roles, plan and subagents."""
