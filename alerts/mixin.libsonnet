// Made from rules/reaperd.rules.yml by `make docs`, as `reaperd rules --format mixin` prints it.
{
  _config+:: {
    // The targets that the rules speak of, by one or more equalities.
    reaperdSelector: "job=\"reaperd\"",
    // The page that has a section for each alert.
    reaperdRunbook: "docs/runbook.md",
  },

  local spokenOf(rule) = rule {
    expr: std.strReplace(rule.expr, "job=\"reaperd\"", $._config.reaperdSelector),
    annotations+: { runbook_url: $._config.reaperdRunbook + std.substr(super.runbook_url, 15, 99) },
  },

  prometheusAlerts+:: {
    groups+: [group { rules: std.map(spokenOf, group.rules) } for group in groups],
  },

  grafanaDashboards+:: {
    'reaperd.json': (import 'dashboards/reaperd.json'),
  },

  local groups = [
    {
      "name": "reaperd.process",
      "rules": [
        {
          "alert": "ReaperdDown",
          "expr": "sum by (job, namespace, deployment) (up{job=\"reaperd\"}) == 0\nor\nabsent(up{job=\"reaperd\"})\n",
          "for": "5m",
          "labels": {
            "severity": "critical"
          },
          "annotations": {
            "summary": "No reaperd answers.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}No process has answered a scrape for 5 minutes. Nothing is watched, nothing is terminated.",
            "runbook_url": "docs/runbook.md#reaperddown"
          }
        },
        {
          "alert": "ReaperdInstanceDown",
          "expr": "up{job=\"reaperd\"} == 0\nand on (job, namespace, deployment)\nsum by (job, namespace, deployment) (up{job=\"reaperd\"}) > 0\n",
          "for": "15m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "One reaperd of several does not answer.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}{{ $labels.instance }} has not answered a scrape for 15 minutes. Another one does the work; if that ends too, nobody does.",
            "runbook_url": "docs/runbook.md#reaperdinstancedown"
          }
        },
        {
          "alert": "ReaperdNobodyLeads",
          "expr": "max by (job, namespace, deployment) (reaperd_leader{job=\"reaperd\"}) == 0\n",
          "for": "5m",
          "labels": {
            "severity": "critical"
          },
          "annotations": {
            "summary": "No reaperd holds the lease.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}Every process only looks. Either one that is not scraped holds the lease, or the ledger cannot be written.",
            "runbook_url": "docs/runbook.md#reaperdnobodyleads"
          }
        },
        {
          "alert": "ReaperdTwoLeaders",
          "expr": "sum by (job, namespace, deployment) (reaperd_leader{job=\"reaperd\"}) > 1\n",
          "for": "5m",
          "labels": {
            "severity": "critical"
          },
          "annotations": {
            "summary": "Several reaperd act at once.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}{{ $value }} processes hold a lease. One ledger gives one lease, so they have several ledgers: each has a brake, a breaker and an hour's limit of its own.",
            "runbook_url": "docs/runbook.md#reaperdtwoleaders"
          }
        },
        {
          "alert": "ReaperdConfigReloadFailed",
          "expr": "reaperd_config_last_reload_successful{job=\"reaperd\"} == 0\n",
          "for": "5m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "A changed configuration was refused.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}{{ $labels.instance }} goes on with the settings that it had. A restart would fail on the new ones.",
            "runbook_url": "docs/runbook.md#reaperdconfigreloadfailed"
          }
        },
        {
          "alert": "ReaperdLedgerRecreated",
          "expr": "max by (job, namespace, deployment) (reaperd_ledger_created_timestamp_seconds{job=\"reaperd\"})\n> on (job, namespace, deployment)\nmax by (job, namespace, deployment) (reaperd_ledger_created_timestamp_seconds{job=\"reaperd\"} offset 6h)\n",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "reaperd has a new ledger, and has forgotten everything.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}The ledger is not the one of 6 hours ago. The brake, the confirmations, open requests, the last hour's count and the known registry are gone with it.",
            "runbook_url": "docs/runbook.md#reaperdledgerrecreated"
          }
        },
        {
          "alert": "ReaperdRunsMissed",
          "expr": "sum by (job, namespace, deployment, kind) (increase(reaperd_scheduler_missed_runs_total{job=\"reaperd\"}[1h])) > 5\n",
          "for": "15m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "Passes take longer than their interval.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}{{ $value | humanize }} runs of kind {{ $labels.kind }} did not start in the last hour: the one before was still at it, or the process was held up.",
            "runbook_url": "docs/runbook.md#reaperdrunsmissed"
          }
        },
        {
          "alert": "ReaperdMetricsIncomplete",
          "expr": "reaperd_collector_errors_total{job=\"reaperd\"} > 0\n",
          "for": "5m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "A part of the metrics is left out.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}{{ $labels.instance }} could not make some parts of its page ({{ $value }} in all). Other alerts may be silent because their metric is missing.",
            "runbook_url": "docs/runbook.md#reaperdmetricsincomplete"
          }
        },
        {
          "alert": "ReaperdAlertsUndelivered",
          "expr": "sum by (job, namespace, deployment, channel) (increase(reaperd_alerts_total{job=\"reaperd\", outcome=\"failed\"}[30m])) > 0\nunless on (job, namespace, deployment, channel)\nsum by (job, namespace, deployment, channel) (increase(reaperd_alerts_total{job=\"reaperd\", outcome=\"sent\"}[30m])) > 0\n",
          "for": "15m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "reaperd cannot deliver its own alerts.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}The channel {{ $labels.channel }} has failed for half an hour and taken nothing. What it is to tell reaches nobody.",
            "runbook_url": "docs/runbook.md#reaperdalertsundelivered"
          }
        }
      ]
    },
    {
      "name": "reaperd.looks",
      "rules": [
        {
          "alert": "ReaperdLookStale",
          "expr": "(\n  time() - max by (job, namespace, deployment) (\n    reaperd_last_look_timestamp_seconds{job=\"reaperd\", kind=\"reconcile\"}\n    and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n  )\n  > on (job, namespace, deployment)\n  300 + 2 * max by (job, namespace, deployment) (reaperd_pass_interval_seconds{job=\"reaperd\", kind=\"reconcile\"})\n)\nor\n(\n  time() - max by (job, namespace, deployment) (\n    reaperd_config_last_reload_timestamp_seconds{job=\"reaperd\"}\n    and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n    unless on (job, instance) reaperd_last_look_timestamp_seconds{job=\"reaperd\", kind=\"reconcile\"}\n  )\n)\n",
          "for": "10m",
          "labels": {
            "severity": "critical"
          },
          "annotations": {
            "summary": "reaperd does not see its machines.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}The last complete look was {{ $value | humanizeDuration }} ago: a cloud, the registry, the ledger or the clock is in the way. Nothing is terminated, and orphans cost money.",
            "runbook_url": "docs/runbook.md#reaperdlookstale"
          }
        },
        {
          "alert": "ReaperdAuditStale",
          "expr": "(\n  time() - max by (job, namespace, deployment) (\n    reaperd_last_look_timestamp_seconds{job=\"reaperd\", kind=\"audit\"}\n    and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n  )\n  > on (job, namespace, deployment)\n  3600 + 2 * max by (job, namespace, deployment) (reaperd_pass_interval_seconds{job=\"reaperd\", kind=\"audit\"})\n)\nor\n(\n  time() - max by (job, namespace, deployment) (\n    reaperd_config_last_reload_timestamp_seconds{job=\"reaperd\"}\n    and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n    unless on (job, instance) reaperd_last_look_timestamp_seconds{job=\"reaperd\", kind=\"audit\"}\n  )\n  > 3600\n)\n",
          "for": "15m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "Leaks are not looked for.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}No sweep saw every region for {{ $value | humanizeDuration }}. New leaks in the regions that failed are not seen.",
            "runbook_url": "docs/runbook.md#reaperdauditstale"
          }
        },
        {
          "alert": "ReaperdListingIncomplete",
          "expr": "max by (job, namespace, deployment, kind, provider, region) (\n  reaperd_scope_up{job=\"reaperd\"} == 0\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n)\n",
          "for": "15m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "A region cannot be listed whole.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}{{ $labels.provider }}/{{ $labels.region }} was not seen whole by any pass of kind {{ $labels.kind }} for 15 minutes. Of kind reconcile, that stops every termination, in the other regions too.",
            "runbook_url": "docs/runbook.md#reaperdlistingincomplete"
          }
        },
        {
          "alert": "ReaperdRefusingToAct",
          "expr": "sum by (job, namespace, deployment, reason) (\n  increase(reaperd_refusals_total{job=\"reaperd\", reason!~\"not_leader|reap_hold|breaker_open\"}[1h])\n) > 0\nunless on (job, namespace, deployment)\n(\n  time() - max by (job, namespace, deployment) (reaperd_last_complete_timestamp_seconds{job=\"reaperd\", kind=\"reconcile\"})\n  <= on (job, namespace, deployment)\n  900 + 5 * max by (job, namespace, deployment) (reaperd_pass_interval_seconds{job=\"reaperd\", kind=\"reconcile\"})\n)\n",
          "for": "5m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "reaperd stands down, pass after pass.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}Nothing is terminated. Passes of the last hour that were refused for {{ $labels.reason }}: {{ $value | humanize }}.",
            "runbook_url": "docs/runbook.md#reaperdrefusingtoact"
          }
        },
        {
          "alert": "ReaperdPassesDeferred",
          "expr": "sum by (job, namespace, deployment) (\n  increase(reaperd_passes_total{job=\"reaperd\", kind=\"reconcile\", outcome=\"deferred\"}[1h])\n) > 0\nunless on (job, namespace, deployment)\n(\n  time() - max by (job, namespace, deployment) (reaperd_last_complete_timestamp_seconds{job=\"reaperd\", kind=\"reconcile\"})\n  <= on (job, namespace, deployment)\n  900 + 5 * max by (job, namespace, deployment) (reaperd_pass_interval_seconds{job=\"reaperd\", kind=\"reconcile\"})\n)\n",
          "for": "5m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "reaperd never gets to the end of a pass.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}No pass came to its end for more than a quarter of an hour, and {{ $value | humanize }} stopped half-way in the last hour: it is throttled, or its credentials run out.",
            "runbook_url": "docs/runbook.md#reaperdpassesdeferred"
          }
        },
        {
          "alert": "ReaperdPassesFailing",
          "expr": "sum by (job, namespace, deployment, kind) (increase(reaperd_passes_total{job=\"reaperd\", outcome=\"error\"}[1h])) > 0\n",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "A pass ended with an error that nobody expected.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}Passes of kind {{ $labels.kind }} that failed in the last hour: {{ $value | humanize }}. The log has a trace (pass_failed).",
            "runbook_url": "docs/runbook.md#reaperdpassesfailing"
          }
        },
        {
          "alert": "ReaperdProviderFault",
          "expr": "sum by (job, namespace, deployment, provider, operation) (\n  increase(reaperd_provider_requests_total{job=\"reaperd\", result=\"error\"}[1h])\n) > 0\n",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "A provider raised what it must not raise.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}{{ $labels.operation }} of {{ $labels.provider }} failed in a way that its port does not allow. That is a fault in the provider's code. Times in the last hour: {{ $value | humanize }}.",
            "runbook_url": "docs/runbook.md#reaperdproviderfault"
          }
        },
        {
          "alert": "ReaperdRegistryUnusable",
          "expr": "max by (job, namespace, deployment) (\n  reaperd_registry_up{job=\"reaperd\"} == 0\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n)\n",
          "for": "5m",
          "labels": {
            "severity": "critical"
          },
          "annotations": {
            "summary": "The registry cannot be used.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}The registry cannot be read, or it is not the one that is known. Nothing is terminated until a person has looked.",
            "runbook_url": "docs/runbook.md#reaperdregistryunusable"
          }
        },
        {
          "alert": "ReaperdBlind",
          "expr": "sum by (job, namespace, deployment) (\n  reaperd_owned_instances{job=\"reaperd\"} and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n) == 0\nand on (job, namespace, deployment)\nsum by (job, namespace, deployment) (\n  reaperd_missing_workers{job=\"reaperd\"} and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n) >= 3\n",
          "for": "5m",
          "labels": {
            "severity": "critical"
          },
          "annotations": {
            "summary": "The registry names machines, and no cloud shows one.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}Not one machine of ours is listed, while three or more live rows name one. The fleet is gone, or the tag, the account or the regions are wrong.",
            "runbook_url": "docs/runbook.md#reaperdblind"
          }
        },
        {
          "alert": "ReaperdMissingWorkers",
          "expr": "max by (job, namespace, deployment, provider, region) (\n  reaperd_missing_workers{job=\"reaperd\"} > 0\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n)\n",
          "for": "30m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "Workers are in the registry and in no cloud.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}Live rows that name a machine in {{ $labels.provider }}/{{ $labels.region }} that the cloud does not have: {{ $value }}. The control plane believes in workers that are gone.",
            "runbook_url": "docs/runbook.md#reaperdmissingworkers"
          }
        }
      ]
    },
    {
      "name": "reaperd.terminations",
      "rules": [
        {
          "alert": "ReaperdBreakerOpen",
          "expr": "max by (job, namespace, deployment) (\n  reaperd_breaker_open{job=\"reaperd\"} == 1\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n  and on (job, instance) reaperd_mode{job=\"reaperd\", mode=\"enforce\"} == 1\n)\n",
          "for": "2m",
          "labels": {
            "severity": "critical"
          },
          "annotations": {
            "summary": "The plan is too big, and none of it is carried out.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}More machines would go than the breaker lets through. First ask why so many have no row. It stays open until the cause is gone or a person approves the plan.",
            "runbook_url": "docs/runbook.md#reaperdbreakeropen"
          }
        },
        {
          "alert": "ReaperdBreakerOpen",
          "expr": "max by (job, namespace, deployment) (\n  reaperd_breaker_open{job=\"reaperd\"} == 1\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n  and on (job, instance) reaperd_mode{job=\"reaperd\", mode=\"dry-run\"} == 1\n)\n",
          "for": "2m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "The rehearsed plan is too big.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}The breaker would stop the rehearsed plan. Find out why so many machines have no row before it enforces.",
            "runbook_url": "docs/runbook.md#reaperdbreakeropen"
          }
        },
        {
          "alert": "ReaperdBrakeForgotten",
          "expr": "max by (job, namespace, deployment) (\n  reaperd_reap_hold{job=\"reaperd\"} == 1\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n)\n",
          "for": "4h",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "The brake has been on for hours.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}Somebody typed `reaperd hold` more than 4 hours ago. No orphan is terminated until `reaperd resume`.",
            "runbook_url": "docs/runbook.md#reaperdbrakeforgotten"
          }
        },
        {
          "alert": "ReaperdOrphansNotTerminated",
          "expr": "time() - (\n  min by (job, namespace, deployment, provider, region) (\n    reaperd_oldest_orphan_first_seen_timestamp_seconds{job=\"reaperd\"}\n    and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n    and on (job, instance) reaperd_mode{job=\"reaperd\", mode=\"enforce\"} == 1\n  )\n  ==\n  min by (job, namespace, deployment, provider, region) (\n    reaperd_oldest_orphan_first_seen_timestamp_seconds{job=\"reaperd\"} offset 2h\n    and on (job, instance) reaperd_leader{job=\"reaperd\"} offset 2h == 1\n  )\n  and\n  min by (job, namespace, deployment, provider, region) (\n    min_over_time(reaperd_orphan_instances{job=\"reaperd\"}[2h])\n  ) > 0\n)\nand on (job, namespace, deployment)\n(\n  sum by (job, namespace, deployment) (\n    reaperd_orphan_instances{job=\"reaperd\"} and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n  )\n  > on (job, namespace, deployment)\n  sum by (job, namespace, deployment) (\n    reaperd_held_instances{job=\"reaperd\", reason=~\"never_list|protect_tag|managed\"}\n    and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n  )\n)\nunless on (job, namespace, deployment)\nmax by (job, namespace, deployment) (\n  reaperd_breaker_open{job=\"reaperd\"} == 1 or reaperd_reap_hold{job=\"reaperd\"} == 1\n)\n",
          "for": "15m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "An orphan stays, although reaperd enforces.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}The oldest orphan in {{ $labels.provider }}/{{ $labels.region }} is the same as 2 hours ago. It was first seen {{ $value | humanizeDuration }} ago and costs money.",
            "runbook_url": "docs/runbook.md#reaperdorphansnotterminated"
          }
        },
        {
          "alert": "ReaperdOrphansHeld",
          "expr": "max by (job, namespace, deployment, reason) (\n  reaperd_held_instances{\n    job=\"reaperd\", reason=~\"foreign_account|ambiguous_worker|foreign_registry|protect_tag|managed\"\n  } > 0\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n)\n",
          "for": "1h",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "Machines without a row are held until a person decides.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}Machines that have been kept for an hour for {{ $labels.reason }}: {{ $value }}. That does not end by itself.",
            "runbook_url": "docs/runbook.md#reaperdorphansheld"
          }
        },
        {
          "alert": "ReaperdTerminationsFailing",
          "expr": "sum by (job, namespace, deployment, provider, outcome) (\n  increase(reaperd_terminations_total{job=\"reaperd\", outcome=~\"failed|denied|protected|invalid_id\"}[1h])\n) > 0\nor\nsum by (job, namespace, deployment, provider, outcome) (\n  increase(reaperd_terminations_total{job=\"reaperd\", outcome=\"unknown\"}[1h])\n) > 2.5\n",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "The cloud does not terminate what it is asked to.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}{{ $labels.provider }} answered {{ $labels.outcome }} to {{ $value | humanize }} requests of the last hour. The machines run on.",
            "runbook_url": "docs/runbook.md#reaperdterminationsfailing"
          }
        },
        {
          "alert": "ReaperdTerminationsNotConfirmed",
          "expr": "sum by (job, namespace, deployment, provider) (\n  min_over_time(reaperd_terminating_instances{job=\"reaperd\"}[1h])\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n) > 0\nand on (job, namespace, deployment, provider)\nsum by (job, namespace, deployment, provider) (\n  increase(reaperd_terminations_total{job=\"reaperd\", outcome=\"confirmed_gone\"}[1h])\n) == 0\n",
          "for": "1h",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "Machines were asked to end and do not.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}Machines of {{ $labels.provider }} that were asked to end more than an hour ago: {{ $value }}. Not one was confirmed gone.",
            "runbook_url": "docs/runbook.md#reaperdterminationsnotconfirmed"
          }
        },
        {
          "alert": "ReaperdTerminationBurst",
          "expr": "sum by (job, namespace, deployment) (\n  increase(reaperd_terminations_total{job=\"reaperd\", outcome=~\"requested|unknown\"}[1h])\n) > 15\n",
          "labels": {
            "severity": "critical"
          },
          "annotations": {
            "summary": "reaperd terminates unusually many machines.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}{{ $value | humanize }} terminations were sent in an hour, more than the breaker's default lets through. If nobody approved that, type `reaperd hold` first and read on afterwards.",
            "runbook_url": "docs/runbook.md#reaperdterminationburst"
          }
        },
        {
          "alert": "ReaperdStillRehearsing",
          "expr": "(\n  min by (job, namespace, deployment) (min_over_time(reaperd_mode{job=\"reaperd\", mode=\"dry-run\"}[7d])) == 1\n  and on (job, namespace, deployment)\n  max by (job, namespace, deployment) (reaperd_mode{job=\"reaperd\", mode=\"dry-run\"} offset 7d) == 1\n)\nand on (job, namespace, deployment)\nsum by (job, namespace, deployment) (\n  reaperd_would_terminate_instances{job=\"reaperd\"} and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n) > 0\n",
          "for": "1h",
          "labels": {
            "severity": "info"
          },
          "annotations": {
            "summary": "reaperd has only rehearsed for a week.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}It would terminate machines, and does not: its mode is dry-run.",
            "runbook_url": "docs/runbook.md#reaperdstillrehearsing"
          }
        }
      ]
    },
    {
      "name": "reaperd.leaks",
      "rules": [
        {
          "alert": "ReaperdUnownedLongRunning",
          "expr": "max by (job, namespace, deployment, provider, region) (\n  reaperd_unowned_long_running_instances{job=\"reaperd\"} > 0\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n)\n",
          "for": "30m",
          "keep_firing_for": "10m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "Machines run that nobody owns.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}Machines in {{ $labels.provider }}/{{ $labels.region }} without an owner that have run for longer than audit.max_age: {{ $value }}. reaperd never terminates these.",
            "runbook_url": "docs/runbook.md#reaperdunownedlongrunning"
          }
        },
        {
          "alert": "ReaperdLeaksCostly",
          "expr": "sum by (job, namespace, deployment) (\n  reaperd_leak_cost_dollars_per_hour{job=\"reaperd\"}\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n) > 5\n",
          "for": "1h",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "Leaks cost real money.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}Machines that nobody owns cost {{ $value | printf \"%.2f\" }} dollars an hour, as far as their price is known.",
            "runbook_url": "docs/runbook.md#reaperdleakscostly"
          }
        },
        {
          "alert": "ReaperdNearMisses",
          "expr": "max by (job, namespace, deployment, provider, region) (\n  reaperd_near_miss_tags{job=\"reaperd\"} > 0\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n)\n",
          "for": "1h",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "Machines carry a misspelt ownership tag.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}Machines in {{ $labels.provider }}/{{ $labels.region }} whose tag is ours but for case or blanks: {{ $value }}. They are not ours, and are never terminated.",
            "runbook_url": "docs/runbook.md#reaperdnearmisses"
          }
        },
        {
          "alert": "ReaperdOwnedOutOfScope",
          "expr": "max by (job, namespace, deployment, provider, region) (\n  reaperd_owned_out_of_scope_instances{job=\"reaperd\"} > 0\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n)\n",
          "for": "30m",
          "keep_firing_for": "10m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "Machines of ours are where nobody reaps.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}Machines in {{ $labels.provider }}/{{ $labels.region }} with our tag, in a region that the configuration leaves out: {{ $value }}. An orphan among them is never terminated.",
            "runbook_url": "docs/runbook.md#reaperdownedoutofscope"
          }
        },
        {
          "alert": "ReaperdAuditSkipped",
          "expr": "max by (job, namespace, deployment, provider) (\n  reaperd_audit_skipped{job=\"reaperd\"} == 1\n  and on (job, instance) reaperd_leader{job=\"reaperd\"} == 1\n)\n",
          "for": "1d",
          "labels": {
            "severity": "info"
          },
          "annotations": {
            "summary": "A provider is not looked through for leaks.",
            "description": "{{ with $labels.deployment }}{{ . }}: {{ end }}The kind of provider {{ $labels.provider }} cannot be audited: a machine without our tag is seen there by nobody.",
            "runbook_url": "docs/runbook.md#reaperdauditskipped"
          }
        }
      ]
    },
    {
      "name": "reaperd.watchdog",
      "rules": [
        {
          "alert": "ReaperdWatchdog",
          "expr": "vector(1)\n",
          "labels": {
            "severity": "none"
          },
          "annotations": {
            "summary": "The alerts of reaperd arrive.",
            "description": "This alert always fires. When it stops, Prometheus, its rules or the way to you is broken.",
            "runbook_url": "docs/runbook.md#reaperdwatchdog"
          }
        }
      ]
    }
  ],
}
