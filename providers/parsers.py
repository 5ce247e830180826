"""What reads the answers of a cloud. Pure."""

from __future__ import annotations

from enum import StrEnum


class Parser(StrEnum):
    """Who makes a tree of an answer. The value is a metric label."""

    LXML = "lxml"
    STDLIB = "stdlib"
    """Where lxml is not installed: with the same proof, and in three times the time."""
