"""Which image a machine is launched from: the one that is named, or the newest of a variant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from providers.aws.answers import Answer
from providers.aws.errors import BrokenAnswerError
from providers.aws.kept import Kept
from providers.aws.launch_options import AwsLaunchOptions
from providers.aws.rows import all_rows
from providers.base import Clock
from providers.capacity import WorkerSpec

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import DescribeImagesRequestTypeDef

DEFAULT_VARIANT = "worker"
NO_IMAGE = "image_not_found"


class Images:
    """Finds images, and remembers the newest of each variant for a while."""

    def __init__(self, how: AwsLaunchOptions, clock: Clock) -> None:
        """Keep nothing yet."""
        self._tag = how.image_tag
        self._newest: Kept[tuple[str, str], str] = Kept(clock, how.image_lifetime)

    def image_for(self, spec: WorkerSpec, client: EC2Client, region: str) -> str:
        """Return the id of the image. One that is named wins, and is not looked up.

        Raises:
            BrokenAnswerError: with the code NO_IMAGE if the account has no such image of its own.
            Exception: anything in CALL_ERRORS.
        """
        if spec.image:
            return spec.image
        variant = spec.image_variant or DEFAULT_VARIANT
        return self._newest.get((region, variant), lambda: self._find(client, region, variant))

    def _find(self, client: EC2Client, region: str, variant: str) -> str:
        request: DescribeImagesRequestTypeDef = {
            # Our own only: anybody may publish an image with such a tag.
            "Owners": ["self"],
            "Filters": [
                {"Name": f"tag:{self._tag}", "Values": [variant]},
                {"Name": "state", "Values": ["available"]},
            ],
        }

        def ask(token: str | None) -> Answer:
            asked: DescribeImagesRequestTypeDef = {**request}
            if token is not None:
                asked["NextToken"] = token
            return client.describe_images(**asked)

        rows = all_rows(ask, "Images")
        newest = newest_image(rows)
        if newest is None:
            detail = f"{region} has no image of this account with the tag {self._tag}={variant}"
            raise BrokenAnswerError(NO_IMAGE, f"{detail}. Tag one, or name an image")
        return newest


def newest_image(rows: list[Answer]) -> str | None:
    """Return the id of the image that was made last; of two made at once the same one every time."""
    # Written by AWS in one form, so that the order of the texts is that of the times.
    dated = [(str(row.get("CreationDate", "")), str(row["ImageId"])) for row in rows if _is_available(row)]
    return max(dated)[1] if dated else None


def _is_available(row: Mapping[str, object]) -> bool:
    """Return whether it can be launched, whatever the cloud's own filter did."""
    return bool(row.get("ImageId")) and row.get("State", "available") == "available"
