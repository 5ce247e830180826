"""Clouds behind small ports: list what we own, list everything, terminate one machine."""
