"""One pass each: observe, decide, act, report. They know ports, never adapters."""
