"""How soon the next request may be sent: our own copy of the buckets in which a cloud counts. Pure.

The cloud's buckets are shared with everybody who uses the account, autoscalers among them, so we take only a share.
"""

from __future__ import annotations

from dataclasses import dataclass

from providers.allowance import Allowance, Rate


@dataclass(frozen=True, slots=True)
class Bucket:
    """What may be sent at once, what runs in each second, and what is in it."""

    most: float
    per_second: float
    held: float
    since: float
    """When it held that, by the monotonic clock, in seconds."""

    @classmethod
    def of(cls, rate: Rate, share: float, now: float) -> Bucket:
        """Return our share of a cloud's bucket, full.

        Less what a second brings: nobody knows when in a second the cloud adds to its own.
        """
        most = max((rate.burst - rate.per_second) * share, 1.0)
        return cls(most, rate.per_second * share, most, now)

    def at(self, now: float) -> Bucket:
        """Return the bucket as it is by now."""
        held = min(self.most, self.held + max(now - self.since, 0.0) * self.per_second)
        return Bucket(self.most, self.per_second, held, now)

    def taken(self, amount: float, now: float) -> Bucket:
        """Return what is left once so much was taken out, which may be less than nothing."""
        full = self.at(now)
        return Bucket(full.most, full.per_second, full.held - amount, now)

    def wait(self, amount: float, now: float) -> float:
        """Return in how many seconds it holds so much; of more than it can ever hold, as much as it can."""
        missing = min(amount, self.most) - self.at(now).held
        return max(missing / self.per_second, 0.0)


@dataclass(frozen=True, slots=True)
class Pace:
    """What is left of our share of one scope's allowance."""

    requests: Bucket
    machines: Bucket

    @classmethod
    def of(cls, allowance: Allowance, share: float, now: float) -> Pace:
        """Return the whole share."""
        return cls(Bucket.of(allowance.requests, share, now), Bucket.of(allowance.machines, share, now))

    def wait(self, machines: int, now: float) -> float:
        """Return in how many seconds a request that names so many may be sent."""
        return max(self.requests.wait(1, now), self.machines.wait(machines, now))

    def spent(self, requests: int, machines: int, now: float) -> Pace:
        """Return what is left once so many requests, which named so many machines together, were answered.

        To be counted at their answer: the cloud counted them before it, and what it added to a bucket that was full
        until then was lost.
        """
        return Pace(self.requests.taken(requests, now), self.machines.taken(machines, now))


def together(allowance: Allowance, share: float) -> int:
    """Return how many machines one request may name under our share."""
    return min(allowance.together, int(Bucket.of(allowance.machines, share, 0.0).most))
