"""Decisions, and nothing else. No I/O, no clock, no logger: data in, data out."""
