"""The life of the long-running process: start, rhythm, leadership, signals, probes and a clean end."""
