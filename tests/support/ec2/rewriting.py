"""Changes to a right answer that make it a wrong one."""

from __future__ import annotations

import copy
import html
import re
from xml.etree import ElementTree as ET

from tests.support.ec2.protocol import EC2_NAMESPACE, REQUEST_ID

CONTAINERS = (
    "reservationSet",
    "instancesSet",
    "spotInstanceRequestSet",
    "spotPriceHistorySet",
    "instanceTypeSet",
    "instanceTypeOfferingSet",
    "instanceStatusSet",
    "regionInfo",
    "fleetSet",
    "tagSet",
    "GetCallerIdentityResult",
    "AssumeRoleResult",
)
_NEXT_TOKEN = re.compile(rb"<nextToken>([^<]+)</nextToken>")


def without_container(body: bytes) -> bytes:
    """Take the list out, as if the reply were of another kind."""
    root = ET.fromstring(body)
    for child in list(root):
        if _name(child) in CONTAINERS:
            root.remove(child)
    return _text(root)


def next_token(body: bytes) -> str | None:
    """Return where the page says it goes on."""
    found = _NEXT_TOKEN.search(body)
    return html.unescape(found[1].decode()) if found else None


def with_token(body: bytes, token: str | None) -> bytes:
    """Make the page go on elsewhere, or end."""
    root = ET.fromstring(body)
    if (old := _child(root, "nextToken")) is not None:
        root.remove(old)
    if token is not None:
        ET.SubElement(root, f"{{{_namespace(root)}}}nextToken").text = token
    return _text(root)


def with_reservation(body: bytes, reservation: bytes | None) -> bytes:
    """Put a reservation at the front; without one the page repeats its own first."""
    root = ET.fromstring(body)
    found = _child(root, "reservationSet")
    if found is None:
        return body
    if reservation is not None:
        found.insert(0, ET.fromstring(reservation))
    elif len(found):
        found.insert(0, copy.deepcopy(found[0]))
    return _text(root)


def last_reservation(body: bytes) -> bytes | None:
    """Return the last reservation of a page."""
    found = _child(ET.fromstring(body), "reservationSet")
    return ET.tostring(found[-1]) if found is not None and len(found) else None


def empty_page(action: str, container: str, token: str) -> bytes:
    """Return a page with nothing on it that goes on."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{action}Response xmlns="{EC2_NAMESPACE}">'
        f"<requestId>{REQUEST_ID}</requestId><{container}/><nextToken>{token}</nextToken></{action}Response>"
    ).encode()


def _child(root: ET.Element, name: str) -> ET.Element | None:
    return next((child for child in root if _name(child) == name), None)


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _namespace(root: ET.Element) -> str:
    return root.tag.rpartition("}")[0].removeprefix("{")


def _text(root: ET.Element) -> bytes:
    return ET.tostring(root, encoding="UTF-8", xml_declaration=True, default_namespace=_namespace(root) or None)
