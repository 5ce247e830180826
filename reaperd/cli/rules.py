"""`rules`: what ships for Prometheus and Grafana."""

from __future__ import annotations

import re

import click

from alerts.rulebook import JOB, RUNBOOK, Form, rulebook
from reaperd.cli.output import put

_PLAIN = re.compile(r"[\w./:~%?=&@+-]+")
"""What needs no quotes in YAML, in PromQL and in Jsonnet."""


def _plain(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not _PLAIN.fullmatch(value):
        message = "letters, digits and any of ./:~%?=&@+- only"
        raise click.BadParameter(message)
    return value


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice([str(form) for form in Form]),
    default=str(Form.PROMETHEUS),
    show_default=True,
    help="A rule file, the resource of the Prometheus operator, a Jsonnet mixin, or Grafana's dashboard.",
)
@click.option("--job", default=JOB, show_default=True, callback=_plain, help="The job under which Prometheus scrapes.")
@click.option(
    "--runbook", metavar="URL", default=RUNBOOK, show_default=True, callback=_plain, help="Where your runbook page is."
)
def rules(form: str, job: str, runbook: str) -> None:
    """Print the Prometheus rules that ship with this version.

    Also their forms for the Prometheus operator and for Jsonnet, and the
    dashboard for Grafana, which asks for the job itself.

    \b
    Examples:
      reaperd rules > /etc/prometheus/rules/reaperd.yml
      reaperd rules --runbook https://wiki.example.org/reaperd
      reaperd rules --format prometheusrule | kubectl apply -f -
      reaperd rules --format dashboard > reaperd.json

    \b
    Exit codes: 0 printed; 2 wrong usage.
    """
    put(rulebook(Form(form), job=job, runbook=runbook))
