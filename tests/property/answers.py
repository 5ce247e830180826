"""Answers to DescribeInstances as EC2 could write them, and such as no EC2 writes."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

from hypothesis import strategies as st

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=12)
"""What a person may type into a tag."""
WHITE = st.sampled_from(["", "", "\n", "\n    ", " \t\n", "\r\n"])
MOMENTS = st.datetimes().map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%S.000Z").rjust(24, "0"))
OUR_KEYS = (
    "reaperd:owner",
    "reaperd:worker-id",
    "reaperd:protect",
    "Reaperd:Protect ",
    "reaperd:registry-id",
    "aws:autoscaling:groupName",
    "aws:ec2:fleet-id",
    "Name",
)
UNKNOWN = ("futureThing", "x", "item", "value", "tagSets", "instanceid")
"""Names that EC2 has for nothing in a machine. Below them, anything may stand."""
UNREAD = ("imageId", "keyName", "privateDnsName", "dnsName", "reason", "clientToken", "architecture")
"""Texts of a machine that nobody here reads."""


@dataclass(frozen=True)
class Element:
    """One element, as it is to be written."""

    name: str
    children: tuple[Element, ...] = ()
    text: str = ""


def leaf(name, values=WORDS):
    """Return an element with a text."""
    return values.map(lambda text: Element(name, text=text))


def group(name, *children):
    """Return an element with some of these children, in any order, among others that nobody knows."""
    return st.tuples(_some(children), st.lists(STRANGE, max_size=2)).flatmap(
        lambda parts: st.permutations((*parts[0], *parts[1])).map(lambda order: Element(name, tuple(order)))
    )


def several(name, item, **sizes):
    """Return a list of items."""
    return st.lists(item, **sizes).map(lambda items: Element(name, tuple(items)))


def _some(children):
    every = st.tuples(*(child | st.none() for child in children))
    return every.map(lambda found: tuple(each for each in found if each is not None))


STRANGE = st.recursive(
    leaf("key") | st.sampled_from((*UNKNOWN, *UNREAD)).flatmap(leaf),
    lambda inner: st.tuples(st.sampled_from((*UNKNOWN, "tagSet", "instancesSet")), st.lists(inner, max_size=3)).map(
        lambda parts: Element(parts[0], tuple(parts[1]))
    ),
    max_leaves=4,
).filter(lambda element: element.name not in {"key", "value", "tagSet", "instancesSet", "item"})
"""What nobody knows, whatever stands below it."""


@st.composite
def tag_sets(draw):
    """Return tags, no key twice, most of them with a value."""
    keys = draw(st.lists(st.sampled_from(OUR_KEYS) | WORDS.filter(bool), unique=True, max_size=5))
    items = []
    for key in keys:
        parts = [Element("key", text=key)]
        if draw(st.booleans()) or draw(st.booleans()):
            parts.append(Element("value", text=draw(WORDS)))
        items.append(Element("item", tuple(draw(st.permutations(parts)))))
    return Element("tagSet", tuple(items))


BOOLEANS = st.sampled_from(["true", "false"])
STATES = st.sampled_from(["running", "stopped", "terminated", "shutting-down", "melting", ""])
INTERFACES = several(
    "networkInterfaceSet",
    group(
        "item",
        leaf("ownerId"),
        group("attachment", leaf("deviceIndex", st.integers(0, 3).map(str)), leaf("attachTime", MOMENTS)),
        group("groupSet", group("item", leaf("groupId"))),
    ),
    max_size=2,
)
IDS = st.integers(0, 2**40).map(lambda number: f"i-{number:017x}")


@st.composite
def instances(draw):
    """Return a machine, with an id."""
    rest = draw(
        group(
            "item",
            group("instanceState", leaf("name", STATES), leaf("code", st.just("16"))),
            leaf("launchTime", MOMENTS),
            group("placement", leaf("availabilityZone"), leaf("tenancy")),
            leaf("instanceType"),
            leaf("spotInstanceRequestId"),
            tag_sets(),
            group("operator", leaf("managed", BOOLEANS), leaf("principal")),
            INTERFACES,
            leaf("imageId"),
            group("monitoring", leaf("state")),
        )
    )
    where = draw(st.integers(0, len(rest.children)))
    return Element("item", (*rest.children[:where], Element("instanceId", text=draw(IDS)), *rest.children[where:]))


RESERVATIONS = st.tuples(leaf("ownerId"), several("instancesSet", instances(), max_size=2), st.booleans()).map(
    lambda parts: Element("item", parts[:2] if parts[2] else (Element("groupSet"), *parts[1::-1]))
)
ANSWERS = st.tuples(
    several("reservationSet", RESERVATIONS, max_size=2), st.none() | leaf("nextToken"), leaf("requestId")
).map(lambda parts: Element("DescribeInstancesResponse", tuple(each for each in parts if each is not None)))


@st.composite
def documents(draw):
    """Return an answer as bytes: with blanks between the elements or without, in some namespace or in none."""
    answer = draw(ANSWERS)
    blank, prefix = draw(WHITE), draw(st.sampled_from(["", "", "", "ec2:"]))
    where = draw(st.sampled_from(['xmlns="{}"', 'xmlns="urn:other"', ""])).format(NAMESPACE)
    if prefix:
        where = f'xmlns:ec2="{NAMESPACE}"'
    head = draw(st.sampled_from(['<?xml version="1.0" encoding="UTF-8"?>\n', "<?xml version='1.0'?>", ""]))
    return (head + _written(answer, blank, prefix, where)).encode()


def _written(element, blank, prefix, attributes=""):
    name = prefix + element.name
    start = f"{name} {attributes}".strip()
    if element.children:
        inner = blank + blank.join(_written(child, blank, prefix) for child in element.children) + blank
    else:
        inner = escape(element.text, {"\t": "&#9;", "'": "&apos;", '"': "&#x22;"})
    return f"<{start}>{inner}</{name}>" if inner else f"<{start}/>"


SNIPPETS = tuple(
    snippet.encode("utf-8", "surrogatepass")
    for snippet in (
        "<!-- x -->", "<!---->", "<![CDATA[x]]>", "<![CDATA[  ]]>", "<![CDATA[]]>", "&amp;", "&lt;", "&#32;", "&#xe9;",
        "&undefined;", "&", "<", ">", "]]>", "<?x y?>", "<?xml version='1.0'?>", "<!DOCTYPE x>",
        "<!DOCTYPE x [<!ENTITY e 'running'>]>", "&e;", "<item/>", "<x/>", "<x>y</x>", "<item><key>k</key></item>", " ",
        "\n", "\r", "\t", "é", "\U0001f9e8", "\ufeff", "\ud800", "\0", "\x0b", "<tagSet/>", "<instancesSet/>",
        "<reservationSet/>", "<instanceId>i-9</instanceId>", "<launchTime>2026-11-29T10:00:00Z</launchTime>",
        "<launchTime>12:00</launchTime>", "<name>running</name>", "<key>k</key>", "<value>v</value>", "</item>",
        "<item>", "<nextToken>t</nextToken>", "<managed>true</managed>", "<operator/>", ' xmlns=""', " xmlns:p='urn:p'",
        "p:", "<p:x/>", '<p:instanceId xmlns:p="urn:p">i-8</p:instanceId>', " a='b' a='c'", "T", "Z", "0", "-",
        "9" * 400, "<managed>TRUE</managed>",
    )
)  # fmt: skip

BYTES = st.binary(min_size=1, max_size=2) | st.sampled_from(SNIPPETS)
EDITS = st.lists(
    st.tuples(st.sampled_from(["insert", "cut", "copy", "swap", "end"]), st.floats(0, 1), st.integers(1, 60), BYTES),
    min_size=1,
    max_size=2,
)


def edited(document, edits):
    """Return the document with something put in, taken out, doubled, overwritten or cut off."""
    for kind, share, length, new in edits:
        at = round(share * len(document))
        before, middle, after = document[:at], document[at : at + length], document[at + length :]
        document = {
            "insert": before + new + middle + after,
            "cut": before + after,
            "copy": before + middle + middle + after,
            "swap": before + new + after,
            "end": before,
        }[kind]
    return document


def between_tags(document, edits):
    """Return the document with something put between two of its tags, where the rest stays well-formed."""
    for _, share, _, new in edits:
        places = [at for at in range(1, len(document)) if document[at : at + 1] == b"<"]
        at = places[min(round(share * len(places)), len(places) - 1)] if places else 0
        document = document[:at] + new + document[at:]
    return document
