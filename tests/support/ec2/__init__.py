"""Test clouds: an EC2 and STS of our own that can lie, and a fault layer in front of moto."""

from tests.support.ec2.cloud import FaultyEc2
from tests.support.ec2.control import control
from tests.support.ec2.faults import Fault, FaultKind, Rule
from tests.support.ec2.journal import Exchange
from tests.support.ec2.model import Machine, SpotRequest
from tests.support.ec2.protocol import ApiRequest

__all__ = ["ApiRequest", "Exchange", "Fault", "FaultKind", "FaultyEc2", "Machine", "Rule", "SpotRequest", "control"]
