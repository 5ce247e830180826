"""The worked cases of the safety rules, played against the real program.

`cases/` is data: what stands in the world, what happens, what must come of it. `runner.play` builds that world (our
test EC2 over HTTP, a registry file, a ledger file, one clock), runs the passes through the production wiring and
returns the evidence; `judging.judge` holds it against the expectations. `elsewhere.yaml` names the tests of those
expectations that need a running daemon, a container or a unit; a test demands that no expectation is left.
`python -m tests.scenarios` shows it all as a table.
"""
