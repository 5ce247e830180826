"""The soak: months of a daemon in minutes, with everything going wrong that the test cloud can make go wrong.

Three processes: a cloud, the daemon with the real jobs on a clock that is moved, and the one that moves it, churns the
fleet, deals faults, plays the operator, and judges every request that the cloud received.
"""
