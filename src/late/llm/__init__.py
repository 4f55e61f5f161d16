"""Models: conversations, providers, dialects, transports."""
