"""DescribeInstances is read by us, by either parser, and all else by the SDK."""

from __future__ import annotations

import gzip
import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from providers.aws import AwsAccount
from providers.aws.answers import answer_of
from providers.aws.errors import BrokenAnswerError, UnreadablePageError
from providers.aws.hooks import READ_ONLY
from providers.aws.pages import READ_BY, UNMARKED, PageReader, page_of
from providers.aws.reservations import INTERFACES
from providers.aws.session import AwsSessions
from providers.errors import IncompleteListingError
from providers.model import Coverage
from providers.parsers import Parser
from reaperd.clock import ManualClock
from tests.unit.providers.aws.builders import REGION, options
from tests.unit.providers.aws.canned import (
    NOW,
    OWNED,
    CannedAws,
    Reply,
    failure,
    instance,
    page,
    regions,
    reservation,
)

PAGE = page(reservation(instance("i-1"), instance("i-2")))
REQUEST: Any = {"MaxResults": 5}

parsers = pytest.mark.parametrize("parser", Parser)


def sessions(aws: CannedAws, pages: PageReader | None, **changes: Any) -> AwsSessions:
    return AwsSessions(options(endpoint_url=aws.url, **changes), allowed=READ_ONLY, pages=pages)


def client(aws: CannedAws, pages: PageReader | None, **changes: Any) -> Any:
    return sessions(aws, pages, **changes).open().ec2(REGION).client


def hole(aws: CannedAws, pages: PageReader | None = None, **changes: Any) -> Coverage:
    given = options(endpoint_url=aws.url, **changes)
    account = AwsAccount(given, sessions(aws, pages, **changes), clock=ManualClock(NOW))
    with pytest.raises(IncompleteListingError) as raised:
        account.list_owned()
    (coverage,) = raised.value.coverage
    return coverage


def packed(text: str, *, body: bytes | None = None, status: int = 200) -> Reply:
    return Reply(gzip.compress(text.encode()) if body is None else body, packed="gzip", status=status)


@parsers
def test_the_page_says_who_read_it_and_keeps_what_the_sdk_says_of_the_answer(canned: CannedAws, parser: Parser) -> None:
    canned.will("DescribeInstances", Reply(page(reservation(instance("i-1")), token="t1")))

    answer = page_of(client(canned, PageReader(parser)), REQUEST)

    assert answer[READ_BY] == parser
    assert answer["NextToken"] == "t1"
    metadata: Any = answer["ResponseMetadata"]
    assert (metadata["RequestId"], metadata["HTTPStatusCode"]) == ("r", 200)
    assert metadata["HTTPHeaders"]["content-type"] == "text/xml;charset=UTF-8"


@parsers
def test_a_request_id_is_told_as_it_is(canned: CannedAws, parser: Parser) -> None:
    canned.will("DescribeInstances", Reply(PAGE.replace("<requestId>r<", "<requestId>a&lt;b&amp;c<")))

    metadata: Any = page_of(client(canned, PageReader(parser)), REQUEST)["ResponseMetadata"]

    assert metadata["RequestId"] == "a<b&c"


def test_a_page_that_the_sdk_read_proves_nothing(canned: CannedAws) -> None:
    canned.will("DescribeInstances", Reply(PAGE))

    with pytest.raises(BrokenAnswerError) as raised:
        page_of(client(canned, None), REQUEST)

    assert raised.value.code == UNMARKED


def test_a_listing_that_the_sdk_read_is_no_listing(canned: CannedAws) -> None:
    canned.will("DescribeInstances", Reply(PAGE))

    assert hole(canned).error_code == UNMARKED


def test_what_is_left_for_the_sdk_is_no_page(canned: CannedAws) -> None:
    """As if what a handler gives were no longer taken over into the result."""
    reading = client(canned, PageReader())

    def forget(*, customized_response_dict: dict[str, object], **_: object) -> None:
        customized_response_dict.clear()

    reading.meta.events.register_last("before-parse", forget)
    canned.will("DescribeInstances", Reply(PAGE))

    assert "Reservations" not in answer_of(lambda: reading.describe_instances(**REQUEST))
    with pytest.raises(BrokenAnswerError):
        page_of(reading, REQUEST)


@parsers
def test_gzip_is_asked_for_and_unpacked(canned: CannedAws, parser: Parser) -> None:
    canned.will("DescribeInstances", packed(PAGE))

    answer: Any = page_of(client(canned, PageReader(parser)), REQUEST)

    assert canned.headers[-1]["accept-encoding"] == "gzip"
    assert [each["InstanceId"] for each in answer["Reservations"][0]["Instances"]] == ["i-1", "i-2"]


def test_gzip_is_asked_for_again_on_every_attempt(canned: CannedAws) -> None:
    canned.will("DescribeInstances", failure("RequestLimitExceeded", 503), packed(PAGE))

    page_of(client(canned, PageReader(), max_attempts=2), REQUEST)

    assert [headers["accept-encoding"] for headers in canned.headers] == ["gzip", "gzip"]


def test_nothing_else_is_asked_for_in_gzip(canned: CannedAws) -> None:
    canned.will("DescribeRegions", Reply(regions(REGION)))

    client(canned, PageReader()).describe_regions()

    assert canned.headers[-1]["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "body",
    [gzip.compress(PAGE.encode())[:-9], gzip.compress(PAGE.encode()) + b"x", b"", b"no"],
    ids=["cut", "longer", "empty", "other"],
)
def test_gzip_that_is_not_whole_is_asked_for_once_more_and_then_an_error(canned: CannedAws, body: bytes) -> None:
    canned.will("DescribeInstances", packed("", body=body))

    assert hole(canned, PageReader()).error_code == "malformed_answer"
    assert len(canned.asked("DescribeInstances")) == 2


def test_gzip_that_is_whole_the_second_time_is_a_page(canned: CannedAws) -> None:
    whole = packed(PAGE)
    assert isinstance(whole.body, bytes)
    canned.will("DescribeInstances", packed("", body=whole.body[:-4]), whole)

    assert READ_BY in page_of(client(canned, PageReader()), REQUEST)


def test_an_error_in_gzip_is_an_error_of_the_sdk(canned: CannedAws) -> None:
    text = failure("UnauthorizedOperation").body
    assert isinstance(text, str)
    canned.will("DescribeInstances", packed(text, status=403))

    assert hole(canned, PageReader()).error_code == "UnauthorizedOperation"


def test_a_server_error_that_cannot_be_unpacked_is_asked_again_by_the_sdk(canned: CannedAws) -> None:
    canned.will("DescribeInstances", packed("", body=b"no gzip", status=503), packed(PAGE))

    assert READ_BY in client(canned, PageReader(), max_attempts=2).describe_instances(**REQUEST)


@parsers
@pytest.mark.parametrize(
    "body",
    [
        "",
        "   ",
        PAGE[:-1],
        PAGE + "<again/>",
        PAGE.replace("</reservationSet>", ""),
        PAGE.replace("DescribeInstancesResponse", "DescribeTagsResponse"),
        PAGE.replace("?>", "?><!DOCTYPE a [<!ENTITY e 'x'>]>"),
        PAGE.replace("?>", "?><!-- a --><!DOCTYPE a>"),
        "<!DOCTYPE a>" + PAGE.partition("?>")[2],
        PAGE.replace("i-1", "&undefined;"),
        PAGE.replace("<ownerId>", "<unknown>&undefined;</unknown><ownerId>"),
        PAGE.replace("<ownerId>", "<prefix:unknown/><ownerId>"),
        PAGE.replace("i-1", "i-<b/>1"),
        PAGE.replace("i-1", "i-\x01"),
        PAGE.replace("<launchTime>", "<launchTime>2026-11-29T10:00:00Z</launchTime><launchTime>"),
        PAGE.replace("2026-11-29T10", "2026-11-32T10"),
        PAGE.replace("2026-11-29T10:00:00.000Z", "12:00"),
        PAGE.replace("2026-11-29T10:00:00.000Z", "2026-11-29T10:00:00"),
        PAGE.replace("2026-11-29T10:00:00.000Z", ""),
        PAGE.replace("<reservationSet>", "<Errors><Error><Code>InternalError</Code></Error></Errors><reservationSet>"),
        PAGE.replace("</reservationSet>", "</reservationSet><Error/>"),
        PAGE.replace("</reservationSet>", "</reservationSet><errorSet/>"),
        PAGE.replace("</reservationSet>", "</reservationSet><warnings><item>partial</item></warnings>"),
        PAGE.replace("</reservationSet>", "</reservationSet><NextToken>abc</NextToken>"),
        PAGE.encode("utf-16"),
        "\ufeff" + PAGE,
        PAGE.encode().replace(b"i-1", b"i-\xff"),
    ],
)
def test_what_is_no_page_is_refused_without_a_word_of_it(canned: CannedAws, parser: Parser, body: str | bytes) -> None:
    canned.will("DescribeInstances", Reply(body))
    reading = client(canned, PageReader(parser))

    with pytest.raises(UnreadablePageError) as raised:
        reading.describe_instances(**REQUEST)

    text = str(raised.value)
    assert len(text) < 120
    assert not any(word in text for word in ("i-1", "prod", "undefined", "unknown", "2026", "12:00"))


@parsers
@pytest.mark.parametrize(
    "text", ["  <![CDATA[prod]]>", "  \rprod", "  \r\n prod", " \r ", "  &#13;prod", "   ", " &#32;p "]
)
def test_a_text_keeps_the_blanks_that_it_has_for_the_sdk(canned: CannedAws, parser: Parser, text: str) -> None:
    canned.will("DescribeInstances", Reply(PAGE.replace(">prod<", f">{text}<")))

    ours, theirs = (client(canned, pages).describe_instances(**REQUEST) for pages in (PageReader(parser), None))

    tags = [answer["Reservations"][0]["Instances"][0]["Tags"] for answer in (ours, theirs)]
    assert tags[0] == tags[1]
    assert tags[0][0]["Value"] != "prod"


@parsers
def test_a_page_never_reaches_the_log(canned: CannedAws, parser: Parser, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    canned.will("DescribeInstances", Reply(page(reservation(instance(tags=OWNED | {"password": "swordfish"})))))

    page_of(client(canned, PageReader(parser)), REQUEST)

    assert "Response body" in caplog.text
    assert "swordfish" not in caplog.text


def test_no_more_than_two_threads_hold_a_page_however_many_ask(canned: CannedAws) -> None:
    canned.will("DescribeInstances", packed(PAGE))
    reading = client(canned, PageReader())

    with ThreadPoolExecutor(12) as askers:
        answers = list(askers.map(lambda _: page_of(reading, REQUEST), range(48)))

    assert all(READ_BY in answer for answer in answers)
    assert sum(thread.name.startswith("providers-pages") for thread in threading.enumerate()) <= 2


def test_what_is_left_out_is_left_out_of_that_page_alone(canned: CannedAws) -> None:
    more = (
        "<networkInterfaceSet><item><attachment><deviceIndex>0</deviceIndex></attachment></item></networkInterfaceSet>"
    )
    canned.will("DescribeInstances", Reply(page(reservation(instance(more=more)))))
    reading = client(canned, PageReader())

    answers: list[Any] = [page_of(reading, REQUEST, without=INTERFACES), reading.describe_instances(**REQUEST)]

    machines = [answer["Reservations"][0]["Instances"][0] for answer in answers]
    assert ["NetworkInterfaces" in machine for machine in machines] == [False, True]
    assert machines[0].items() <= machines[1].items()


FORKED = """
import os, sys
from providers.aws.markup import available_parser
from providers.aws.pages import _READERS
body = b"<DescribeInstancesResponse><requestId>r</requestId><reservationSet/></DescribeInstancesResponse>"
def read():
    return _READERS.read(body, None, available_parser(), ())["RequestId"]
read()
if (child := os.fork()) == 0:
    os._exit(0 if read() == "r" else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_process_that_was_forked_reads_pages_too():
    # It has none of the threads that its parent read with; who waits for them waits for ever.
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], timeout=60, check=False)

    assert done.returncode == 0
