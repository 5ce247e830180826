"""What the running daemon answers over HTTP: metrics, probes, its status and a landing page.

The server itself is in `reaperd.http.server`: who only asks needs nothing of what it takes.
"""

from reaperd.http.desk import Desk, Probe

__all__ = ["Desk", "Probe"]
