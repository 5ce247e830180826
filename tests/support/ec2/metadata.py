"""The instance metadata service, version 2: who am I."""

from __future__ import annotations

from tests.support.ec2.protocol import Answer, HttpRequest
from tests.support.ec2.world import World

TOKEN = "metadata-token"
_TEXT = "text/plain"


def answer(world: World, http: HttpRequest) -> Answer:
    """Answer as the service does, 404 off EC2 and 401 without a token."""
    if world.own_instance is None:
        return Answer(body=b"", status=404, content_type=_TEXT)
    if http.path == "/latest/api/token":
        return Answer(body=TOKEN.encode(), status=200 if http.method == "PUT" else 405, content_type=_TEXT)
    if http.headers.get("X-aws-ec2-metadata-token") != TOKEN:
        return Answer(body=b"", status=401, content_type=_TEXT)
    instance_id, region = world.own_instance
    known = {"/latest/meta-data/instance-id": instance_id, "/latest/meta-data/placement/region": region}
    found = known.get(http.path)
    return Answer(body=(found or "").encode(), status=200 if found else 404, content_type=_TEXT)
