"""What goes wrong in a cloud: with its listings, with who asks, and with terminations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.soak.card import BRISK, FAST, Card, Hand, Play
from tests.soak.stage import REGIONS

LISTING, TERMINATE = "DescribeInstances", "TerminateInstances"
INCOMPLETE = frozenset({"listing_incomplete"})
LATE = frozenset({"listing_incomplete", "deadline"})
WRONG = frozenset({"wrong_account"})
CLOCK = frozenset({"clock"})


def _fault(*faults: dict[str, Any]) -> Play:
    def play(hand: Hand) -> Iterator[None]:
        cloud = hand.stage.cloud
        numbers = [cloud.fault(**_placed(hand, fault)) for fault in faults]
        yield
        for number in numbers:
            cloud.end_fault(number)

    return play


def _placed(hand: Hand, fault: dict[str, Any]) -> dict[str, Any]:
    """A region by chance, where one is asked for."""
    return {**fault, "region": hand.fleet.chance.choice(REGIONS)} if fault.get("region") == "?" else fault


def _settings(**settings: Any) -> Play:
    usual: dict[str, Any] = {"date_skew_s": 0}

    def play(hand: Hand) -> Iterator[None]:
        hand.stage.cloud.configure(**settings)
        yield
        hand.stage.cloud.configure(**{name: usual[name] for name in settings})

    return play


def _broken(name: str, **fault: Any) -> Card:
    play = _fault({"action": LISTING, "region": "?", **fault})
    return Card(name=f"listing: {name}", play=play, stands_down=INCOMPLETE)


def _retried(name: str, **fault: Any) -> Card:
    return replace(_broken(name, **fault), stands_down=LATE, rate=FAST, passes=1)


def _odd(name: str, **fault: Any) -> Card:
    """A listing that may be whole for all that anybody can tell, or not."""
    play = _fault({"action": LISTING, "region": "?", **fault})
    return Card(name=f"listing: {name}", play=play, cloud=False)


LISTINGS = [
    _broken("AuthFailure", code="AuthFailure"),
    _broken("UnauthorizedOperation", code="UnauthorizedOperation"),
    _broken("OptInRequired", code="OptInRequired"),
    _broken("expired credentials", code="RequestExpired"),
    _broken("a web page with 200", kind="html"),
    _broken("nonsense", kind="body", body="<ok/>"),
    _broken("no reservationSet", kind="missing_set"),
    _broken("half a document", kind="malformed"),
    _retried("InternalError", code="InternalError", http=500),
    _retried("503", code="Unavailable", http=503),
    _retried("throttled", code="RequestLimitExceeded", http=503),
    _retried("a web page with 503", kind="html", http=503),
    _retried("truncated", kind="truncated"),
    _retried("connection dropped", kind="drop"),
    _retried("no answer", kind="drop", delay_s=2.0),
    _retried("too slow", delay_s=1.5),
    replace(_odd("a byte now and then", kind="dripping", drip_s=0.001, times=1), rate=FAST),
    _odd("an empty page with a token", kind="empty_page", times=2),
    _odd("a page that leads to itself", kind="repeated_token"),
    _odd("a page that hides the next", kind="lost_token"),
    _odd("a machine listed twice", kind="duplicate"),
    _odd("a view of the past", kind="stale"),
    _odd("slow", delay_s=0.2),
    _odd("spot requests cannot be had", action="DescribeSpotInstanceRequests", code="UnauthorizedOperation"),
    _odd("fleets cannot be had", action="DescribeFleets", code="UnauthorizedOperation"),
    Card(
        name="listing: wrongly dated",
        play=_settings(date_skew_s=400),
        stands_down=CLOCK,
    ),
    Card(name="listing: not dated", play=_settings(date_skew_s=None), stands_down=INCOMPLETE),
    Card(
        name="audit: no regions",
        play=_fault({"action": "DescribeRegions", "code": "UnauthorizedOperation"}),
    ),
]


def _other_account(hand: Hand) -> Iterator[None]:
    hand.stage.cloud.set_caller_account("999999999999")
    yield
    hand.stage.cloud.set_caller_account("111111111111")


def _unproved(name: str, **fault: Any) -> Card:
    play = _fault({"action": "GetCallerIdentity", **fault})
    return Card(name=f"identity: {name}", play=play, stands_down=WRONG)


IDENTITIES = [
    _unproved("AccessDenied", code="AccessDenied", http=403),
    _unproved("expired credentials", code="ExpiredToken", http=403),
    _unproved("a web page", kind="html"),
    _unproved("no result", kind="missing_set"),
    Card(name="identity: another account", play=_other_account, stands_down=WRONG, cloud=False),
]


# ---------------------------------------------------------------- terminations


def _answered(name: str, **fault: Any) -> Card:
    return Card(name=f"terminate: {name}", play=_fault({"action": TERMINATE, **fault}), rate=BRISK)


_RELOOK = {"action": LISTING, "params": {"InstanceId.1": "*"}}

TERMINATIONS = [
    _answered("throttled", code="RequestLimitExceeded", http=503),
    _answered("UnauthorizedOperation", code="UnauthorizedOperation"),
    _answered("OperationNotPermitted", code="OperationNotPermitted"),
    _answered("not found", code="InvalidInstanceID.NotFound"),
    _answered("malformed id", code="InvalidInstanceID.Malformed"),
    _answered("expired credentials", code="RequestExpired"),
    _answered("InternalError", code="InternalError", http=500),
    _answered("InternalError after the deed", code="InternalError", http=500, applied=True),
    _answered("503", kind="html", http=503),
    _answered("a web page with 200", kind="html"),
    _answered("an unknown code", code="SomethingNew"),
    _answered("half a document", kind="malformed"),
    _answered("truncated", kind="truncated"),
    _answered("lost reply", kind="lost_reply"),
    _answered("connection dropped", kind="drop"),
    _answered("no answer for long", kind="drop", delay_s=1.0, times=1),
    _answered("slow", delay_s=0.2, times=2),
    _answered("accepted and ignored", kind="ignored"),
    Card(name="terminate: second look fails", play=_fault({**_RELOOK, "code": "InternalError"}), rate=BRISK),
    Card(name="terminate: second look is empty", play=_fault({**_RELOOK, "kind": "missing_set"})),
    Card(
        name="terminate: spot request stays",
        play=_fault({"action": "CancelSpotInstanceRequests", "code": "UnauthorizedOperation"}),
        passes=3,
    ),
]
