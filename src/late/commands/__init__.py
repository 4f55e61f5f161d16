"""The bodies of the subcommands; imported when chosen."""
