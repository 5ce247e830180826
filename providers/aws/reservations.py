"""What is read of an answer to DescribeInstances, taken from its tree in the SDK's own words. Pure.

The names, the structures and the texts are those that the SDK would give; the fields that nobody here reads are left
out. Where the SDK would put up with something, such as an element that is there twice, this may refuse it. It never
gives less of a field that is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime

from providers.aws.errors import UnreadablePageError
from providers.aws.markup import Node, any_namespace, children_named

ROOT = "DescribeInstancesResponse"

Read = Callable[[Node], object]

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})")
"""As EC2 writes them all, with Z; an offset means one moment, too. What the SDK would make of others (`12:00` is noon
of today) is no launch time."""


_FLAGS = {"true": True, "false": False}
"""As EC2 writes them. Whatever else the SDK takes for false."""

_OF_A_PAGE = frozenset({"reservationSet", "nextToken", "requestId"})
"""All that EC2 puts into one (2016-11-15). Of a field that it adds some day nobody knows yet whether it is harmless."""

INTERFACES = frozenset({"networkInterfaceSet"})
"""What only the audit reads of a machine: a tenth of the time that it takes to read one."""


def fields_of(root: Node, *, without: Collection[str] = ()) -> Mapping[str, object]:
    """Return the fields of one page. One that is not there is not among them, nor are those of a machine left out.

    Raises:
        UnreadablePageError: if it is another document, or a field cannot be what it should.
    """
    if _local(root.tag) != ROOT:
        msg = f"it is no {ROOT}"
        raise UnreadablePageError(msg)
    if any(_local(child.tag) not in _OF_A_PAGE for child in root):
        # Whatever it says: an error, a warning, or the token of a page that comes next, in another spelling.
        msg = "it has more than a page of machines has"
        raise UnreadablePageError(msg)
    return _page(root.tag.removesuffix(ROOT), without)(root)


def _page(namespace: str, without: Collection[str]) -> _Structure:
    """Return what reads a page. One for each: it remembers every name that it met."""
    attachment = _Structure(deviceIndex=("DeviceIndex", _number), attachTime=("AttachTime", _moment))
    members: dict[str, tuple[str, Read]] = {
        "instanceId": ("InstanceId", _text),
        "instanceState": ("State", _Structure(name=("Name", _text))),
        "launchTime": ("LaunchTime", _moment),
        "placement": ("Placement", _Structure(availabilityZone=("AvailabilityZone", _text))),
        "instanceType": ("InstanceType", _text),
        "spotInstanceRequestId": ("SpotInstanceRequestId", _text),
        "tagSet": ("Tags", _List(_Tag(namespace))),
        "operator": ("Operator", _Structure(managed=("Managed", _flag), principal=("Principal", _text))),
        "networkInterfaceSet": ("NetworkInterfaces", _List(_Wide({"attachment": ("Attachment", attachment)}))),
    }
    instance = _Wide({name: member for name, member in members.items() if name not in without})
    reservation = _Structure(ownerId=("OwnerId", _text), instancesSet=("Instances", _List(instance)))
    return _Structure(
        reservationSet=("Reservations", _List(reservation)),
        nextToken=("NextToken", _text),
        requestId=("RequestId", _text),
    )


class _Structure:
    """Reads the members that it knows, by their local names; of others it knows nothing."""

    def __init__(self, **members: tuple[str, Read]) -> None:
        self._members: Mapping[str, tuple[str, Read]] = members
        self._by_tag: dict[object, tuple[str, Read] | None] = {}

    def __call__(self, children: Iterable[Node]) -> Mapping[str, object]:
        found: dict[str, object] = {}
        by_tag = self._by_tag
        for child in children:
            tag = child.tag
            try:
                member = by_tag[tag]
            except KeyError:
                member = by_tag[tag] = self._members.get(_local(tag))
            if member is not None:
                name, read = member
                if name in found:
                    msg = f"{name} is there twice"
                    raise UnreadablePageError(msg)
                found[name] = read(child)
        return found


class _Wide:
    """Reads one of many members, few of which are known."""

    def __init__(self, members: Mapping[str, tuple[str, Read]]) -> None:
        self._names = any_namespace(members)
        self._structure = _Structure(**members)

    def __call__(self, node: Node) -> Mapping[str, object]:
        return self._structure(children_named(node, self._names))


class _List:
    """Reads every element, whatever it is called, as the SDK does."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def __call__(self, node: Node) -> list[object]:
        element = type(node)
        found: list[object] = []
        if node.text is not None and node.text.strip():
            msg = "a list with a text among its elements"
            raise UnreadablePageError(msg)
        for child in node:
            # Much faster than to ask for its name. A comment, which the SDK does not see, is of another type.
            if type(child) is not element:
                msg = "a list with more than elements in it"
                raise UnreadablePageError(msg)
            found.append(self._read(child))
        return found


_PAIR = 2


class _Tag:
    """Reads a tag: a key and a value, and nothing else, in nearly all cases."""

    def __init__(self, namespace: str) -> None:
        self._key = f"{namespace}key"
        self._value = f"{namespace}value"
        self._otherwise = _Structure(key=("Key", _text), value=("Value", _text))

    def __call__(self, node: Node) -> Mapping[str, object]:
        if len(node) == _PAIR:
            key, value = node[0], node[1]
            if key.tag == self._key and value.tag == self._value:
                return {"Key": _text(key), "Value": _text(value)}
        return self._otherwise(node)


def _local(tag: object) -> str:
    """Return the name without its namespace; empty for a comment and the like, which have no name."""
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _text(node: Node) -> str:
    if len(node):
        msg = "a text with more than text in it"
        raise UnreadablePageError(msg)
    return node.text or ""


def _flag(node: Node) -> bool:
    text = _text(node)
    if text not in _FLAGS:
        msg = "neither true nor false"
        raise UnreadablePageError(msg)
    return _FLAGS[text]


def _number(node: Node) -> int:
    try:
        return int(_text(node))
    except ValueError:
        msg = "a number that is none"
        raise UnreadablePageError(msg) from None


def _moment(node: Node) -> datetime:
    text = _text(node)
    try:
        if _MOMENT.fullmatch(text) is not None:
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    msg = "a time that is none"
    raise UnreadablePageError(msg)
