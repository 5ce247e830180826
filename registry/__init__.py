"""The control plane's record of its workers: a SQLite file that any language can write."""
