"""A control plane in forty lines of code: every machine has its row before it exists.

    export AWS_ACCOUNT_ID=… AWS_DEFAULT_REGION=…     (and the usual variables of AWS)
    python launcher.py REGISTRY DEPLOYMENT TYPE IMAGE [COUNT]

`launch_worker` keeps the order that matters. The row comes first, so no machine is ever without one, however long its
launch takes and wherever this program dies. The worker id of the row is the tag of the machine and the token of the
request. The instance id is filled in from the answer; until then the worker id protects the machine, for as long as
`registry.launching_ttl`.
"""

import os
import sys
from pathlib import Path

from providers.aws import AwsLaunchOptions, AwsOptions, AwsProvider, aws_provider
from providers.capacity import Requirement, WorkerSpec
from providers.errors import ProviderError
from reaperd.clock import SystemClock
from reaperd.errors import LaunchError
from reaperd.launching import launch_worker
from registry.errors import RegistryError
from registry.sqlite import SqliteRegistry
from registry.sqlite.writer import SqliteRegistryWriter


def cloud(registry: Path, deployment: str) -> AwsProvider:
    """Return the account and the region that the variables name."""
    options = AwsOptions(
        name="aws",  # the name of the [[providers]] table in reaperd.toml
        deployment=deployment,
        account=os.environ["AWS_ACCOUNT_ID"],
        regions=(os.environ["AWS_DEFAULT_REGION"],),
    )
    # Optional: makes a second fleet under the same name visible.
    registry_id = SqliteRegistry(registry).snapshot().identity.registry_id
    return aws_provider(options, clock=SystemClock(), how=AwsLaunchOptions(registry_id=registry_id))


def main(registry: str, deployment: str, instance_type: str, image: str, count: str = "1") -> int:
    """Start so many machines; stop at the first that cannot be had."""
    try:
        aws = cloud(Path(registry), deployment)
        writer = SqliteRegistryWriter(Path(registry), deployment)
        offers = aws.quote(Requirement(model="", instance_types=(instance_type,)))
        for _ in range(int(count)):
            print(launch_worker(aws, writer, WorkerSpec(image=image), offers).instance_id)
    except KeyError as missing:
        print(f"set {missing.args[0]}", file=sys.stderr)
        return 2
    except (LaunchError, ProviderError, RegistryError) as error:
        print(f"launch failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
