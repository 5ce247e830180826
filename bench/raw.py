"""The limit: one connection, one thread, nothing signed, nothing retried, nothing proved; parsed by lxml."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

from lxml import etree

from bench.fleet import DEPLOYMENT, OWNER_TAG
from bench.looks import Asked, asked, take

_NAMESPACE = "{http://ec2.amazonaws.com/doc/2016-11-15/}"
_LEAVES = ("instanceId", "instanceType", "launchTime", "spotInstanceRequestId")


def look(options: Asked) -> list[str]:
    """Return the ids of what is ours."""
    connection = http.client.HTTPConnection(urlsplit(options.endpoint).netloc, timeout=600)
    rows = [row for region in options.regions for row in _region(connection, region)]
    connection.close()
    return [str(row["instanceId"]) for row in rows]


def _region(connection: http.client.HTTPConnection, region: str) -> Iterator[dict[str, object]]:
    parser = {"remove_blank_text": True, "collect_ids": False, "huge_tree": True, "resolve_entities": False}
    asked_for = {
        "Action": "DescribeInstances",
        "Version": "2016-11-15",
        "MaxResults": "1000",
        "Filter.1.Name": f"tag:{OWNER_TAG}",
        "Filter.1.Value.1": DEPLOYMENT,
    }
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Authorization": f"AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20260110/{region}/ec2/aws4_request",
    }
    while True:
        connection.request("POST", "/", urlencode(asked_for), headers)
        page = etree.fromstring(connection.getresponse().read(), etree.XMLParser(**parser))
        for reservation in page.find(f"{_NAMESPACE}reservationSet"):
            owner = reservation.findtext(f"{_NAMESPACE}ownerId")
            for instance in reservation.find(f"{_NAMESPACE}instancesSet"):
                yield {"owner": owner, **_row(instance)}
        token = page.findtext(f"{_NAMESPACE}nextToken")
        if not token:
            return
        asked_for["NextToken"] = token


def _row(instance: etree._Element) -> dict[str, object]:
    row: dict[str, object] = {name: instance.findtext(_NAMESPACE + name) for name in _LEAVES}
    row["state"] = instance.findtext(f"{_NAMESPACE}instanceState/{_NAMESPACE}name")
    row["zone"] = instance.findtext(f"{_NAMESPACE}placement/{_NAMESPACE}availabilityZone")
    tags = instance.find(f"{_NAMESPACE}tagSet")
    row["tags"] = {} if tags is None else {tag[0].text: tag[1].text for tag in tags}
    return row


if __name__ == "__main__":
    _asked = asked()
    take(lambda: look(_asked), _asked)
