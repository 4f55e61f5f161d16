"""The event log and the facade between engine and front ends."""
