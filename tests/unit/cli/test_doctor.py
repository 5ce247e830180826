"""`doctor`: what it prints, and what it does to the world, which is nothing."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner, Result

from providers.examination import Answer, Examination, LeftOut, Probe, ScopeExamination, Trouble
from reaperd.cli import main
from reaperd.clock import SystemClock
from reaperd.core.examined_clouds import Wishes, cannot_be_examined, judge_provider
from reaperd.core.examined_host import (
    Ground,
    Holder,
    LedgerFacts,
    RegistryFacts,
    judge_host,
    judge_ledger,
    judge_registry,
    judge_settings,
)
from reaperd.core.findings import CONFIG, Finding, Grade, Subject
from reaperd.core.model import Brake, RefusalReason
from reaperd.ledger.lease import Lease
from reaperd.process import current
from reaperd.report.doctor import draw_findings, findings_document
from reaperd.report.paper import Paper
from reaperd.report.remedies import REFUSED, Whereabouts
from tests.support.ec2 import FaultyEc2
from tests.support.site import tree
from tests.support.worlds import DEPLOYMENT, EAST, NOW, WEST, broken, machine, ref, registry, row, whole
from tests.unit.cli.golden import assert_golden
from tests.unit.cli.running import Place
from tests.unit.cli.test_remedies import _parse

FLEET = Whereabouts(config="/etc/fleet.toml")
FOUND = {
    "name": "aws",
    "account": "111111111111",
    "caller": "arn:aws:sts::111111111111:assumed-role/reaperd/i-0123456789abcdef0",
    "enabled": frozenset({"us-east-1", "eu-west-1", "ap-south-1"}),
}
WISHES = Wishes(enforcing=True, discovering=False, deployment=DEPLOYMENT, owner_tag="reaperd:owner")
GROUND: dict[str, Any] = {
    "folder": "/var/lib/reaperd",
    "is_made": True,
    "owner": "reaperd",
    "mode": 0o700,
    "free_bytes": 20 * 10**9,
    "filesystem": "ext4",
    "is_network": False,
    "is_volatile": False,
}
LEDGER: dict[str, Any] = {"path": "/var/lib/reaperd/ledger.db", "user": "reaperd", "exists": True, "schema": 1}
REGISTRY = "/var/lib/fleet/registry.db"


# ---------------------------------------------------------------- what it prints


def well() -> list[Finding]:
    owned = tuple(machine(f"i-{number}") for number in range(143))
    probes = tuple(Probe(ref=each.ref, answer=Answer.ALLOWED) for each in owned[:20])
    coverage = whole(EAST, instances=143, clock_skew=timedelta(seconds=1), duration=timedelta(seconds=0.4))
    scope = ScopeExamination(coverage=coverage, owned=owned, probes=probes)
    ledger = LedgerFacts(**LEDGER, ground=Ground(**GROUND), holder=Holder(pid=812, host="fleet-1", dead=False))
    return [
        *judge_settings("/etc/fleet.toml", "enforce", []),
        judge_host("i-0123456789abcdef0"),
        *judge_ledger(ledger),
        *judge_provider(Examination(**FOUND, scopes=(scope,)), WISHES),
        *judge_registry(RegistryFacts(path=REGISTRY, snapshot=registry(row()), is_known=True), []),
    ]


def ill() -> list[Finding]:
    no = Trouble(code="UnauthorizedOperation", detail="You are not authorized")
    answers = [Answer.DENIED] * 5 + [Answer.PROTECTED, Answer.UNCLEAR]
    probes = tuple(Probe(ref=ref(f"i-{n}"), answer=answer, trouble=no) for n, answer in enumerate(answers))
    scopes = (
        ScopeExamination(coverage=whole(EAST, clock_skew=timedelta(minutes=7)), owned=(machine(),), probes=probes),
        ScopeExamination(coverage=broken(WEST, detail="An error occurred")),
    )
    others = (
        LeftOut(scope=WEST, instances=3, owned=2),
        LeftOut(scope=EAST, trouble=no),
        LeftOut(scope=EAST, instances=4),
    )
    bad = {"mode": 0o777, "free_bytes": 10**6, "filesystem": "nfs4", "is_network": True}
    ledger = LedgerFacts(
        **LEDGER,
        ground=Ground(**(GROUND | bad)),
        unwritable=("/var/lib/reaperd/ledger.db",),
        brake=Brake(since=NOW, by="ann@fleet", reason="a drill \x1b[2J"),
        holder=Holder(pid=812, host="fleet-1", dead=True),
    )
    wrong = Examination(name="gcp", trouble=Trouble(code="no_credentials", detail="Unable to locate credentials"))
    standing = [(RefusalReason.REGISTRY_IDENTITY, "its epoch fell from 9 to 7: an older copy")]
    return [
        *judge_settings("/etc/fleet.toml", "enforce", ["reconcile.confirm_passes: with 1, a single look decides"]),
        judge_host(None),
        *judge_ledger(ledger),
        *judge_provider(Examination(**FOUND, scopes=scopes, left_out=others), WISHES),
        *judge_provider(wrong, WISHES),
        cannot_be_examined("own", "nimbus"),
        *judge_registry(RegistryFacts(path=REGISTRY, snapshot=registry(row())), standing),
        *judge_registry(RegistryFacts(path=REGISTRY, trouble="there is no such file", remedy="Point to it"), []),
    ]


@pytest.mark.parametrize("findings", [well, ill])
def test_the_page_is_the_golden_one_and_fits(findings: Callable[[], list[Finding]]):
    paper = Paper()

    draw_findings(findings(), paper, FLEET)

    assert_golden(f"doctor_{findings.__name__}", paper.text())
    typed = [line for line in paper.text().splitlines() if not line.startswith("        ")]
    assert max(map(len, typed)) <= 80
    assert "\x1b" not in paper.text()


def test_every_failure_has_a_remedy():
    document = findings_document(ill(), FLEET)

    findings = document["findings"]
    assert isinstance(findings, list)
    assert [each for each in findings if each["grade"] != "ok" and not each["remedy"]] == []


def test_a_finding_without_a_remedy_of_its_own_has_that_of_the_refusal():
    finding = Finding(subject=Subject.CLOCK, grade=Grade.FAILURE, text="off", reason=RefusalReason.CLOCK)

    document = findings_document([finding], FLEET)

    clock = REFUSED[RefusalReason.CLOCK]
    assert document == {
        "kind": "doctor",
        "findings": [
            {
                "subject": "clock",
                "grade": "failure",
                "text": "off",
                "remedy": f"{clock.advice} `timedatectl status` `reaperd plan --config /etc/fleet.toml`",
                "scope": "",
            }
        ],
    }


def test_every_command_of_ours_that_it_recommends_exists():
    typed = [command.replace(CONFIG, "") for each in ill() for command in each.commands]

    ours = [command for command in typed if command.startswith("reaperd ")]
    assert ours
    for command in ours:
        _parse(main, command.split()[1:])


def test_it_does_not_recommend_itself_for_what_it_said():
    paper = Paper()

    draw_findings([each for each in ill() if each.subject is Subject.ACCOUNT], paper, FLEET)

    assert "aws sts get-caller-identity" in paper.text()
    assert "reaperd doctor" not in paper.text()


# ---------------------------------------------------------------- what it finds


@pytest.fixture
def cloud() -> Iterator[FaultyEc2]:
    """Give a cloud, and hold every test to this: only questions reached it."""
    with FaultyEc2(regions=("us-east-1", "eu-west-1", "ap-south-1")) as made:
        yield made
        assert made.mutating_requests() == []
        read = {"AssumeRole", "DescribeInstances", "DescribeRegions", "GetCallerIdentity", "ListAccounts"}
        # The metadata service has no actions.
        assert {e.action for e in made.requests() if not e.request.dry_run} - {""} <= read
        looked = {"DescribeFleets", "DescribeInstances", "DescribeSpotFleetRequests", "DescribeSpotInstanceRequests"}
        assert {e.action for e in made.dry_runs()} <= looked | {"CancelSpotInstanceRequests", "TerminateInstances"}


@pytest.fixture
def doctor(place: Place, cloud: FaultyEc2, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    # Any free port: the usual one may be somebody's on this machine.
    monkeypatch.setenv("REAPERD_HTTP__LISTEN", "127.0.0.1:0")
    place.configure(mode="enforce")
    place.make_registry()

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["doctor", "--config", str(place.config), *words])

    return run


def told(result: Result, subject: str, *, grade: str | None = None) -> list[str]:
    """Return the texts of one subject, with their scopes in front."""
    findings = json.loads(result.stdout)["findings"]
    return [
        f"{each['scope']}: {each['text']}"
        for each in findings
        if each["subject"] == subject and grade in {None, each["grade"]}
    ]


def failures(result: Result) -> list[str]:
    return [each["subject"] for each in json.loads(result.stdout)["findings"] if each["grade"] == "failure"]


def test_a_host_on_which_all_is_well_is_0(doctor, cloud: FaultyEc2, place: Place):
    cloud.add_instance(owner=DEPLOYMENT, worker="w-1")

    result = doctor("--format", "json")

    assert (result.exit_code, failures(result)) == (0, [])
    assert told(result, "account") == [
        "aws: 111111111111, as arn:aws:iam::111111111111:user/tester",
        "organization: there is none, and so no account without a table",
    ]
    assert told(result, "listing")[0].startswith("aws/us-east-1: 1 machine of ours, listed whole in ")
    assert told(result, "permissions")[0].startswith("aws/us-east-1: 1 could be terminated (DryRun;")
    assert told(result, "settings", grade="ok") == [f"{place.config}: right, mode enforce"]


def test_the_table_ends_with_the_sum(doctor):
    *_, blank, last = doctor().stdout.splitlines()

    assert blank == ""
    assert last.split(",")[-1] == " 0 failures"


def test_csv_has_one_line_for_every_finding(doctor):
    rows = list(csv.DictReader(io.StringIO(doctor("--format", "csv").stdout)))

    assert list(rows[0]) == ["subject", "grade", "text", "remedy", "scope"]
    assert {row["subject"] for row in rows} >= {"settings", "host", "ledger", "account", "registry"}


@pytest.mark.parametrize(("mode", "code", "grade"), [("enforce", 1, "failure"), ("dry-run", 0, "warning")])
def test_owned_but_not_reapable_fails_only_where_it_is_enforced(
    doctor, cloud: FaultyEc2, place: Place, mode: str, code: int, grade: str
):
    place.configure(mode=mode)
    ids = [cloud.add_instance(owner=DEPLOYMENT, age_s=9000 - n) for n in range(5)]
    cloud.fault(action="TerminateInstances", code="UnauthorizedOperation")

    result = doctor("--format", "json")

    assert result.exit_code == code
    (text,) = told(result, "permissions", grade=grade)
    assert text.startswith("aws/us-east-1: 5 of 5 asked about are owned but not reapable (UnauthorizedOperation): ")
    assert text.endswith(f": {', '.join(ids[:3])} and 2 more")


def test_a_protected_machine_is_a_warning(doctor, cloud: FaultyEc2):
    instance_id = cloud.add_instance(owner=DEPLOYMENT, protected=True)
    cloud.fault(action="TerminateInstances", instance_id=instance_id, code="OperationNotPermitted")

    result = doctor("--format", "json")

    assert result.exit_code == 0
    assert "termination protection" in told(result, "permissions", grade="warning")[0]


def test_a_region_that_fails_is_named_with_its_code(doctor, cloud: FaultyEc2):
    cloud.fault(region="us-east-1", action="DescribeInstances", code="AuthFailure")

    result = doctor("--format", "json")

    assert (result.exit_code, failures(result)) == (1, ["listing"])
    assert "AuthFailure" in told(result, "listing")[0]


def test_a_clock_that_is_off_fails(doctor, cloud: FaultyEc2):
    cloud.configure(date_skew_s=-300)

    result = doctor("--format", "json")

    assert (result.exit_code, failures(result)) == (1, ["clock"])


def test_machines_of_ours_where_no_pass_looks_fail_and_those_of_others_warn(doctor, cloud: FaultyEc2):
    cloud.add_instance(region="eu-west-1", owner=DEPLOYMENT)
    cloud.add_instance(region="ap-south-1", owner="other")

    result = doctor("--format", "json")

    assert (result.exit_code, failures(result)) == (1, ["regions"])
    assert told(result, "regions", grade="failure")[0].startswith("aws/eu-west-1: 1 machine of ours")
    assert told(result, "regions", grade="warning")[0].startswith("aws/ap-south-1: it is left out and holds 1 machine")


def test_another_account_fails(doctor, cloud: FaultyEc2):
    cloud.set_caller_account("999999999999")

    result = doctor("--format", "json")

    assert (result.exit_code, failures(result)) == (1, ["account"])
    assert "999999999999" in told(result, "account")[0]


def test_no_credentials_at_all_fail_and_the_rest_is_told(doctor, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    result = doctor("--format", "json")

    assert (result.exit_code, failures(result)) == (1, ["account"])
    assert "no_credentials" in told(result, "account")[0]
    assert told(result, "registry")


def test_a_profile_that_does_not_exist_fails(doctor, place: Place):
    place.configure(mode="enforce", more='profile = "nobody"')

    result = doctor("--format", "json")

    assert (result.exit_code, failures(result)) == (1, ["account"])
    assert "nobody" in told(result, "account")[0]


def test_two_tables_of_one_account_fail(doctor, place: Place):
    place.configure(more='[[providers]]\nname = "again"\ntype = "aws"\nregions = ["us-east-1"]')

    result = doctor("--format", "json")

    assert (result.exit_code, failures(result)) == (1, ["account"])
    assert "again and aws are the same account 111111111111 in us-east-1" in told(result, "account")[-1]


def test_a_registry_of_another_deployment_fails(doctor, place: Place):
    place.registry.unlink()
    place.make_registry("staging-b")

    result = doctor("--format", "json")

    assert (result.exit_code, failures(result)) == (1, ["registry"])
    assert "staging-b" in told(result, "registry")[0]


def test_a_registry_that_is_missing_fails_with_its_own_remedy(doctor, place: Place):
    place.registry.unlink()

    result = doctor()

    assert result.exit_code == 1
    assert "reaperd registry init --path" in " ".join(result.stdout.split())


def test_a_registry_whose_machines_were_never_listed_fails(doctor, cloud: FaultyEc2, place: Place):
    place.registry.unlink()
    place.make_registry(rows=3)
    cloud.add_instance(owner=DEPLOYMENT, worker="w-else")

    assert failures(doctor("--format", "json")) == ["registry"]


def test_a_part_of_a_listing_proves_nothing_about_the_registry(doctor, cloud: FaultyEc2, place: Place):
    place.config.write_text(place.config.read_text().replace('["us-east-1"]', '["us-east-1", "eu-west-1"]'))
    place.registry.unlink()
    place.make_registry(rows=3)
    cloud.add_instance(region="eu-west-1", owner=DEPLOYMENT, worker="w-else")
    cloud.fault(region="us-east-1", action="DescribeInstances", code="InternalError")

    assert failures(doctor("--format", "json")) == ["listing"]


def test_a_region_that_was_listed_and_is_no_longer_enabled_fails(doctor, cloud: FaultyEc2, place: Place):
    place.config.write_text(place.config.read_text().replace('["us-east-1"]', '"auto"'))
    CliRunner().invoke(main, ["once", "--dry-run", "--config", str(place.config)])
    cloud.set_region("ap-south-1", "not-opted-in")

    result = doctor("--format", "json")

    assert (result.exit_code, failures(result)) == (1, ["listing"])
    assert told(result, "listing", grade="failure")[0].startswith("aws/ap-south-1: it was listed before")


def test_the_brake_and_the_lease_are_told(doctor, place: Place):
    with place.open() as ledger:
        ledger.hold(Brake(since=NOW, by="ann@fleet", reason="drill"))
        assert isinstance(ledger.take_lease(current(), timedelta(minutes=5), SystemClock().now()), Lease)

        result = doctor("--format", "json")

    assert result.exit_code == 0
    assert told(result, "brake") == [": on since 2026-01-10 12:00:00 UTC, by ann@fleet: drill"]
    assert told(result, "daemon")[0].endswith("holds the lease and acts")


def test_what_check_config_warns_of_is_a_warning(doctor, place: Place):
    place.configure(mode="enforce", more="[reconcile]\nconfirm_passes = 1")

    assert any("reconcile.confirm_passes" in text for text in told(doctor("--format", "json"), "settings"))


def test_the_own_machine_is_told(doctor, cloud: FaultyEc2, monkeypatch: pytest.MonkeyPatch):
    own = cloud.add_instance(owner="other")
    cloud.set_own_instance(own, "us-east-1")
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", cloud.url)

    assert told(doctor("--format", "json"), "host") == [f": this is {own}, which is never terminated"]


# ---------------------------------------------------------------- no trace


def test_it_leaves_no_trace_where_there_is_no_ledger(doctor, cloud: FaultyEc2, place: Place):
    cloud.add_instance(owner=DEPLOYMENT)
    before = tree(place.folder)

    doctor()

    assert tree(place.folder) == before
    assert not place.ledger.parent.exists()


def test_it_leaves_no_trace_in_a_ledger(doctor, cloud: FaultyEc2, place: Place):
    cloud.add_instance(owner=DEPLOYMENT)
    place.make_ledger()
    before = tree(place.folder)

    doctor()

    assert tree(place.folder) == before
    with place.open() as ledger:
        assert ledger.recall(NOW).sightings == {}
        assert ledger._connection.execute("SELECT count(*) FROM lease").fetchone() == (0,)


# ---------------------------------------------------------------- configurations and plug-ins


def test_a_bad_configuration_is_78(place: Place):
    place.config.write_text("deployment = 1\n")

    assert CliRunner().invoke(main, ["doctor", "--config", str(place.config)]).exit_code == 78


def test_a_provider_that_nothing_provides_is_78(doctor, place: Place):
    place.config.write_text(place.config.read_text().replace('type = "aws"', 'type = "nimbus"'))

    result = doctor()

    assert result.exit_code == 78
    assert "no plug-in provides type 'nimbus'" in result.stderr


PLUGIN = """\
from providers.examination import Examination

class Plain:
    name = "own"
    def __init__(self, table): ...
    def list_owned(self): raise AssertionError

class Examined(Plain):
    def examine(self): return Examination(name="own")

class Broken(Plain):
    def examine(self): raise LookupError("the sky fell")

class Odd(Plain):
    def examine(self): return {"account": 1}

class Useless:
    def __init__(self, table): ...
"""


@pytest.fixture
def install(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what installs one class of PLUGIN as the provider type `nimbus`."""

    def installed(plugin: str) -> None:
        packages = tmp_path_factory.mktemp("installed")
        module = f"nimbus_{plugin.lower()}"
        (packages / f"{module}.py").write_text(PLUGIN)
        about = packages / "nimbus-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Name: nimbus\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[reaperd.providers]\nnimbus = {module}:{plugin}\n")
        monkeypatch.syspath_prepend(packages)

    return installed


@pytest.mark.parametrize(
    ("plugin", "grade", "text"),
    [
        ("Plain", "warning", "own: skipped: the plug-in 'nimbus' cannot be examined"),
        ("Examined", "ok", "own: it has no accounts"),
        ("Broken", "failure", "own: it could not be examined: LookupError: the sky fell"),
        ("Odd", "failure", "own: it could not be examined: its plug-in answered with a dict"),
        (
            "Useless",
            "failure",
            "own: it could not be examined: provider 'own': what the plug-in 'nimbus' made has no name and list_owned",
        ),
    ],
)
def test_a_plug_in_is_examined_if_it_can_be(doctor, install, place: Place, plugin: str, grade: str, text: str):
    install(plugin)
    place.configure(more='[[providers]]\nname = "own"\ntype = "nimbus"')

    result = doctor("--format", "json")

    assert result.exit_code == (1 if grade == "failure" else 0)
    assert text in told(result, "account", grade=grade)
