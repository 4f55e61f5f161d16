"""Screens that lie above the transcript."""
