"""The reference page of the metrics, rendered from their definitions. `make docs` writes it."""

from __future__ import annotations

from collections.abc import Iterator

from reaperd.report.series import ALL, BUCKETS_SECONDS, CLOSED, Series

_INTRODUCTION = """\
# Metrics

<!-- Generated from reaperd/report/series.py by `make docs`. Edit the definitions, not this page. -->

The daemon serves them at `/metrics`, on `http.listen` (by default `127.0.0.1:9745`), as plain text or as OpenMetrics,
whichever the scraper prefers. A scrape waits for no cloud, no registry and no pass.

* Every counter is there from the start, with all its labels and 0, so that `increase()` sees the first event too.
* A gauge of a scope is absent until that scope was seen whole. It comes from the last complete *look*, whatever was
  decided on it: under the brake, an open breaker or without the lease the orphans are still counted.
* What vanishes is not on the next page: a scope that the configuration dropped, the age of an orphan that is gone.
* Times are seconds since 1970, never ages: `time() - reaperd_last_look_timestamp_seconds{kind="reconcile"}` is the age.
* No label holds the id of a machine or a worker, or the text of an error. For those there are the log and
  `reaperd explain`.
* `process_*` and `python_*` tell of the process itself. Under systemd they need `ProcSubset=all`.

A scrape, in Prometheus' own words:

```yaml
scrape_configs:
  - job_name: reaperd
    static_configs:
      - targets: ["127.0.0.1:9745"]
```

## The metrics

"""

_PATHS = """\
## The other paths

| Path | Answer |
| --- | --- |
| `/` | a page for a person, with links to the others |
| `/healthz` | 200 while the scheduler progresses, else 503; never because a cloud does not answer |
| `/readyz` | 200 while the daemon does its work, or stands by for the one that does; else 503 and why |
| `/api/v1/status` | how things stand, as JSON; `reaperd status` shows it to a person |

Only GET and HEAD are answered; nothing can be changed over HTTP.

## TLS and basic auth

`http.web_config_file` names a file in the format of the Prometheus exporter toolkit:

```yaml
tls_server_config:
  cert_file: server.crt           # relative to this file
  key_file: server.key            # without a passphrase
  # client_ca_file: clients.pem
  # client_auth_type: RequireAndVerifyClientCert    # or VerifyClientCertIfGiven
  # min_version: TLS12            # or TLS13; so also max_version
basic_auth_users:
  prometheus: "$2y$10$…"          # what `htpasswd -nBC 10 prometheus` prints
http_server_config:
  headers:
    Strict-Transport-Security: max-age=31536000
```

* The file and the certificates are read again when they have changed. What cannot be used is told in the log, once,
  and what was in force stays.
* What else the toolkit knows (cipher suites, allowed names of clients, TLS before 1.2) is an error here, so that no
  restriction is silently absent.
* `/healthz` and `/readyz` need no password; a client certificate, if asked for, they do need.
"""


def document() -> str:
    """Return the page."""
    return _INTRODUCTION + "\n".join([*_table(), "", *_labels(), "", _PATHS])


def _table() -> Iterator[str]:
    yield "| Metric | Type | Labels | Meaning |"
    yield "| --- | --- | --- | --- |"
    for series in ALL:
        labels = ", ".join(f"`{label}`" for label in series.labels)
        yield f"| `{series.name}` | {series.kind} | {labels} | {series.meaning} |"


def _labels() -> Iterator[str]:
    yield "## The labels\n"
    yield "`provider` is the name of a `[[providers]]` table, `region` a region that was looked at, `channel` the name"
    yield "of an alert channel, `version` that of the release. The others have fixed values:"
    yield ""
    yield "| Metric | Label | Values |"
    yield "| --- | --- | --- |"
    for (series, label), values in sorted(CLOSED.items(), key=_place):
        if label != "kind":
            yield f"| `{series.name}` | `{label}` | {', '.join(f'`{value}`' for value in values)} |"
    kinds = next(values for (_, label), values in CLOSED.items() if label == "kind")
    yield f"| every one that has it | `kind` | {', '.join(f'`{value}`' for value in kinds)} |"
    bounds = ", ".join(f"{bound:g}" for bound in BUCKETS_SECONDS)
    yield ""
    yield f"The buckets of `reaperd_pass_duration_seconds` end at {bounds} seconds."


def _place(entry: tuple[tuple[Series, str], tuple[str, ...]]) -> tuple[int, int]:
    (series, label), _ = entry
    return ALL.index(series), series.labels.index(label)
