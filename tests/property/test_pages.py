"""Laws of reading a page: by whichever parser, it says what the SDK's own parser says, or it is refused."""

from __future__ import annotations

import copy
import re
from functools import cache

import botocore.session
import pytest
from botocore.model import ServiceModel
from botocore.parsers import create_parser
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.aws.errors import CALL_ERRORS, UnreadablePageError
from providers.aws.markup import tree
from providers.aws.reservations import INTERFACES, fields_of
from providers.aws.translate import (
    MalformedAnswerError,
    Vantage,
    audited_instance,
    next_token,
    owned_instance,
    raw_instances,
)
from providers.model import TagKeys
from providers.parsers import Parser
from tests.property.answers import EDITS, between_tags, documents, edited
from tests.property.recorded import RECORDED

VANTAGE = Vantage(provider="aws", region="us-east-1", keys=TagKeys(), account="123456789012")
READ = {
    "RequestId": None,
    "NextToken": None,
    "Reservations": {
        "OwnerId": None,
        "Instances": {
            "InstanceId": None,
            "State": {"Name": None},
            "LaunchTime": None,
            "Placement": {"AvailabilityZone": None},
            "InstanceType": None,
            "SpotInstanceRequestId": None,
            "Tags": {"Key": None, "Value": None},
            "Operator": {"Managed": None, "Principal": None},
            "NetworkInterfaces": {"Attachment": {"DeviceIndex": None, "AttachTime": None}},
        },
    },
}
"""The fields that are read, by the SDK's names."""

NEWER_NAME = re.compile(rb"<[^<>]*[\x80-\xff]")
"""lxml knows the fifth edition of XML, where names have more letters than in expat's fourth. None of ours has any."""

parsers = pytest.mark.parametrize("parser", Parser)
many = settings(max_examples=4 * settings.default.max_examples)


@cache
def shapes():
    """Return what the SDK is told of an answer: all of it, and of that only what is read."""
    whole = botocore.session.Session().get_component("data_loader").load_service_model("ec2", "service-2")
    part = copy.deepcopy(whole)
    _leave(part["shapes"], "DescribeInstancesResult", READ)
    return tuple(ServiceModel(each, "ec2").operation_model("DescribeInstances").output_shape for each in (whole, part))


def _leave(of, name, wanted):
    """Take every member out of a shape, and of the shapes below it, that is not read."""
    if of[name]["type"] == "list":
        _leave(of, of[name]["member"]["shape"], wanted)
    elif wanted is not None:
        members = of[name]["members"]
        of[name]["members"] = {member: members[member] for member in members if member in wanted}
        for member, shape in of[name]["members"].items():
            _leave(of, shape["shape"], wanted[member])


def by_the_sdk(document, shape):
    answer = {"body": document, "headers": {}, "status_code": 200}
    parsed = create_parser("ec2").parse(answer, shape)
    metadata = parsed.pop("ResponseMetadata")
    # Of this one alone, it says None where nothing is in the element.
    return parsed | {"RequestId": metadata["RequestId"] or ""} if "RequestId" in metadata else parsed


def read_of(value, wanted):
    """Return what is left of a parsed answer without the fields that nobody reads."""
    match value:
        case dict():
            return {name: read_of(each, wanted[name]) for name, each in value.items() if name in wanted}
        case list():
            return [read_of(each, wanted) for each in value]
        case _:
            return value


def by_us(document, parser):
    """Return what we read; None if we refuse."""
    try:
        return fields_of(tree(document, parser))
    except UnreadablePageError:
        return None


def rows(page):
    """Return every machine, as reaper and audit see it, and where the page leads; None if the page is none."""
    try:
        raws = list(raw_instances(page))
        owned = [owned_instance(raw, VANTAGE) for raw in raws]
        return owned, [audited_instance(raw, VANTAGE) for raw in raws], next_token(page)
    except MalformedAnswerError:
        return None


def require_the_same(document, parser):
    """Fail unless we refuse the document, or read exactly what the SDK reads."""
    ours = by_us(document, parser)
    if ours is not None and not (parser is Parser.LXML and NEWER_NAME.search(document)):
        whole, part = shapes()
        # Not even an odd thing in a field is let pass that the SDK would not.
        assert ours == by_the_sdk(document, part)
        try:
            theirs = by_the_sdk(document, whole)
        except CALL_ERRORS:
            return  # At a field that nobody reads.
        assert ours == read_of(theirs, READ)
        assert rows(ours) == rows(theirs)


@parsers
@many
@given(documents())
def test_a_page_as_ec2_writes_it_is_read_as_the_sdk_reads_it(parser, document):
    assert by_us(document, parser) is not None
    require_the_same(document, parser)


@parsers
@many
@given(documents(), EDITS)
def test_a_page_in_which_something_stands_that_does_not_belong_is_read_alike_or_refused(parser, document, edits):
    require_the_same(between_tags(document, edits), parser)


@parsers
@many
@given(documents(), EDITS)
def test_a_page_that_was_damaged_is_read_alike_or_refused(parser, document, edits):
    require_the_same(edited(document, edits), parser)


ODD = (
    " ", "\n", "  a  ", " &#32; ", "&#32;", "&#13;\r\n", "a<b/>", " <b/>", "<b/> ", " <!-- x --> ", "<!-- x --> ",
    " <!-- x -->", "a<!-- x -->b", " <?x y?> ", "a<?x y?>b", " <![CDATA[ ]]> ", "<![CDATA[]]>", "<![CDATA[<b/>]]>",
    "a<![CDATA[b]]>c", "&undefined;", "a&undefined;b", "&amp;amp;", "]]>", "\U0001f9e8", "\x85", "\u2028",
    "a</value><value>b", "a</value><key>b</key><value>c", "a</value></item><!-- x --><item><key>k</key><value>b",
    "a</value></item> x <item><key>k</key><value>b",
)  # fmt: skip


@parsers
@pytest.mark.parametrize("value", ODD)
def test_an_odd_value_of_a_tag_is_read_alike_or_refused(parser, value):
    tags = f"<tagSet><item><key>Name</key><value>{value}</value></item></tagSet>"
    one = (
        f"<item><ownerId>1</ownerId><instancesSet><item><instanceId>i-1</instanceId>{tags}</item></instancesSet></item>"
    )
    document = f"<DescribeInstancesResponse><reservationSet>{one}</reservationSet></DescribeInstancesResponse>"

    require_the_same(document.encode(), parser)
    require_the_same(document.replace("><", ">\n    <").encode(), parser)


@parsers
@pytest.mark.parametrize(
    "inner",
    [
        "machines",
        "truncated<item><instancesSet/></item>",
        "<item><instancesSet>i-1</instancesSet></item>",
        "<item><instancesSet><item><tagSet>none</tagSet></item></instancesSet></item>",
        *(
            f"<item><instancesSet><item><operator><managed>{flag}</managed></operator></item></instancesSet></item>"
            for flag in ("TRUE", "1", "", " true")
        ),
    ],
)
def test_what_would_read_as_fewer_machines_or_as_a_machine_that_nobody_manages_is_refused(parser, inner):
    document = f"<DescribeInstancesResponse><reservationSet>{inner}</reservationSet></DescribeInstancesResponse>"

    assert by_us(document.encode(), parser) is None


@parsers
@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_page_is_read_as_the_sdk_reads_it(parser, name):
    document = RECORDED[name]

    owned, audited, _ = rows(by_us(document, parser))
    assert owned
    assert audited
    require_the_same(document, parser)


@parsers
@pytest.mark.parametrize("name", RECORDED)
@many
@given(EDITS)
def test_a_recorded_page_that_was_damaged_is_read_alike_or_refused(parser, name, edits):
    require_the_same(edited(RECORDED[name], edits), parser)


@parsers
@pytest.mark.parametrize("name", RECORDED)
def test_no_beginning_of_a_recorded_page_is_a_page(parser, name):
    document = RECORDED[name].rstrip()
    step = max(1, len(document) // 500)

    assert all(by_us(document[:end], parser) is None for end in (*range(0, len(document), step), len(document) - 1))


@given(st.data())
def test_what_is_left_out_leaves_all_else_as_it_is(data):
    document = data.draw(documents())
    whole, part = (fields_of(tree(document, Parser.LXML), without=without) for without in ((), INTERFACES))

    wanted = {name: each for name, each in READ["Reservations"]["Instances"].items() if name != "NetworkInterfaces"}

    assert part == read_of(whole, READ | {"Reservations": READ["Reservations"] | {"Instances": wanted}})


def test_a_field_that_nobody_reads_is_not_judged():
    document = RECORDED["full size"].replace(b"<amiLaunchIndex>0<", b"<amiLaunchIndex>none<")

    with pytest.raises(ValueError, match="none"):
        by_the_sdk(document, shapes()[0])
    assert all(by_us(document, parser) == by_us(RECORDED["full size"], parser) for parser in Parser)
