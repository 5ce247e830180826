"""What a daemon cannot do without: the same libraries, one session, and a client for each region. Then it waits.

Prints one line when it has them, and ends with its standard input.
"""

# ruff: noqa: F401, T201 - it imports for the memory that it takes

from __future__ import annotations

import sys

import apscheduler.executors.pool
import apscheduler.schedulers.background
import bcrypt
import boto3
import click
import lxml.etree
import prometheus_client
import pydantic
import sqlite_utils
import structlog
import urllib3
import yaml


def main() -> None:
    """Make the clients, and wait."""
    endpoint, *regions = sys.argv[1:]
    session = boto3.Session()
    clients = [session.client("ec2", region_name=region, endpoint_url=endpoint) for region in regions]
    identity = session.client("sts", region_name=regions[0], endpoint_url=endpoint)
    print(*(client.meta.region_name for client in (identity, *clients)), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
