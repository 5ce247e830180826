"""`types`: what kinds of machine there are, on the test cloud, beside a plug-in that has no list of them."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from providers.capacity import Kind
from providers.catalogue import InstanceType
from providers.errors import QuoteError
from providers.pricelist import ask_for_types
from reaperd.clock import SystemClock
from reaperd.report.paper import Paper
from reaperd.report.typelist import Catalogue, draw_catalogue, type_document
from tests.support.ec2 import FaultyEc2
from tests.support.plugin import install
from tests.unit.cli.golden import assert_golden
from tests.unit.cli.running import Place, run

REGIONS = ("eu-north-1", "eu-west-1", "us-east-1")
PROVIDERS = """\
[[providers]]
name = "aws"
type = "aws"
account = "111111111111"
regions = ["eu-north-1", "eu-west-1", "us-east-1"]
"""
ACME = """\
[[providers]]
name = "acme"
type = "acme"
file = "{folder}/acme.json"
"""


@pytest.fixture
def cloud(monkeypatch):
    with FaultyEc2() as started:
        for name, value in started.environment().items():
            monkeypatch.setenv(name, value)
        started.add_type("g5.12xlarge", vcpus=48, memory_mib=196608, gpus=[("A10G", 4)], regions=REGIONS)
        started.add_type("t3.nano", vcpus=2, memory_mib=512, regions=REGIONS[:2])
        started.add_type("p5.48xlarge", vcpus=192, memory_mib=2097152, gpus=[("H100", 8)], regions=REGIONS, offered=())
        started.add_type("m5.metal", vcpus=96, memory_mib=393216, regions=REGIONS[2:])
        for number, region in enumerate(REGIONS):
            started.set_spot_price("g5.12xlarge", f"2.4{number}", region=region)
            started.set_spot_price("t3.nano", f"0.00{9 - number}", region=region)
        yield started


@pytest.fixture
def place(place: Place, cloud) -> Place:
    configure(place, PROVIDERS)
    return place


def configure(place: Place, providers: str) -> None:
    settings = place.config.read_text()
    aws = settings[settings.index("[[providers]]") :]
    place.config.write_text(settings.replace(aws, providers))


def with_acme(place: Place, monkeypatch, providers: str = PROVIDERS) -> None:
    monkeypatch.syspath_prepend(install(place.folder / "plugin"))
    monkeypatch.delitem(sys.modules, "acme_reaperd", raising=False)
    configure(place, providers + ACME.format(folder=place.folder))
    (place.folder / "acme.json").write_text(json.dumps({"prices": {}, "free": 4, "machines": {}}))


def command(place: Place, *words: str):
    return run("types", *words, "--config", place.config)


def test_types_come_cheapest_first_with_what_they_have(place, monkeypatch):
    with_acme(place, monkeypatch)

    result = command(place)

    assert result.exit_code == 0
    assert_golden("types_mixed", result.stdout)


def test_of_a_region_its_own_prices_are_shown(place):
    result = command(place, "--region", "us-east-1")

    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == ["2.42", "unknown"]
    assert "t3.nano" not in result.stdout


def test_only_the_types_that_are_asked_for_are_told(place):
    told = json.loads(command(place, "--type", "g5.12xlarge", "--format", "json").stdout)

    (machine,) = told["types"]
    assert machine == {
        "provider": "aws",
        "name": "g5.12xlarge",
        "gpu_count": 4,
        "gpu_type": "A10G",
        "memory_gib": "192",
        "vcpus": 48,
        "available": True,
        "price_per_hour": "2.40",
        "currency": "USD",
        "price_kind": "spot",
        "regions": [
            {"region": region, "price_per_hour": price}
            for region, price in zip(REGIONS, ("2.40", "2.41", "2.42"), strict=True)
        ],
    }
    assert (told["kind"], told["failures"], told["without"]) == ("types", [], [])


def test_a_sheet_has_a_line_for_every_type_and_region(place):
    lines = list(csv.DictReader(io.StringIO(command(place, "--format", "csv").stdout)))

    assert [(line["name"], line["region"], line["price_per_hour"]) for line in lines] == [
        ("t3.nano", "eu-north-1", "0.009"),
        ("t3.nano", "eu-west-1", "0.008"),
        *(("g5.12xlarge", region, f"2.4{number}") for number, region in enumerate(REGIONS)),
        ("m5.metal", "us-east-1", ""),
        ("p5.48xlarge", "", ""),
    ]


def test_more_than_twenty_are_counted(place, cloud):
    for number in range(30):
        cloud.add_type(f"c{number}.large", regions=REGIONS)

    assert command(place).stdout.splitlines()[-1].strip() == "and 14 more"
    assert command(place, "--all").stdout.count(".large ") == 30


def test_when_nothing_fits_that_is_said(place):
    result = command(place, "--region", "mars-1")

    assert (result.exit_code, result.stdout.strip()) == (0, "No types.")


def test_a_list_that_is_not_whole_is_none_and_its_reason_is_shown(place, cloud):
    cloud.fault(region="eu-west-1", action="DescribeInstanceTypes", code="UnauthorizedOperation")

    result = command(place)

    assert result.exit_code == 1
    assert "aws/eu-west-1 (UnauthorizedOperation)" in result.stderr
    assert result.stdout == ""


def test_who_did_not_answer_is_named_beside_those_who_did(place, cloud):
    other = PROVIDERS.replace('"aws"\ntype', '"other"\ntype').replace("111111111111", "222222222222")
    configure(place, PROVIDERS + other)

    result = command(place)

    assert result.exit_code == 4
    assert "g5.12xlarge" in result.stdout
    assert "No answer from 3 places:" in result.stdout
    assert "other/eu-west-1   wrong_account" in result.stdout


def test_without_a_list_anywhere_that_is_an_error(place, monkeypatch):
    with_acme(place, monkeypatch, providers="")

    result = command(place)

    assert result.exit_code == 1
    assert "no provider has a list of types: acme" in result.stderr


# ---------------------------------------------------------------- several lists


class Says:
    """A list, or what it raises."""

    def __init__(self, name, answer):
        self.name = name
        self.answer = answer

    def list_instance_types(self):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer() if callable(self.answer) else self.answer


ONE = InstanceType(
    name="small", memory_gib=Decimal(1), vcpus=1, price_per_hour=Decimal("0.1"), regions=("a",), available=True
)


@pytest.mark.parametrize(
    ("memory", "shown"), [("1.69921875", "1.7 GiB"), ("0.613", "0.61 GiB"), ("2048", "2048 GiB"), ("0.5", "0.5 GiB")]
)
def test_an_odd_amount_of_memory_is_rounded_for_a_person(memory, shown):
    paper = Paper()
    draw_catalogue(Catalogue(types=(("aws", replace(ONE, memory_gib=Decimal(memory))),)), paper)

    assert f" {shown} " in paper.text()


def test_lists_are_asked_for_side_by_side_and_a_broken_one_hides_no_other():
    listers = [Says("good", (ONE,)), Says("bad", RuntimeError("boom")), Says("shy", QuoteError("no"))]

    types, failures = ask_for_types(listers, clock=SystemClock(), timeout=None)

    assert types == (("good", ONE),)
    assert [(str(failure.scope), failure.error_code, failure.detail) for failure in failures] == [
        ("bad/*", "runtime_error", "boom"),
        ("shy/*", "quote_error", "no"),
    ]


def test_a_list_that_is_late_is_not_waited_for():
    listers = [Says("good", (ONE,)), Says("slow", (ONE,))]

    with pytest.raises(QuoteError) as caught:
        ask_for_types(listers, clock=SystemClock(), timeout=timedelta(0))

    assert [failure.error_code for failure in caught.value.failures] == ["deadline", "deadline"]


def test_a_price_on_demand_is_told_as_such():
    paper = Paper()

    draw_catalogue(Catalogue(types=(("lab", ONE),)), paper)

    assert "0.1 USD  on-demand  small" in paper.text()
    assert type_document(ONE)["price_kind"] == str(Kind.ON_DEMAND)
