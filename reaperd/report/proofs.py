"""What a provider kept of its promises."""

from __future__ import annotations

from collections.abc import Sequence

from providers.proving import Proof, Verdict
from reaperd.report.document import Document
from reaperd.report.sheet import sheet

_MARKS = {Verdict.KEPT: "ok", Verdict.BROKEN: "BROKEN", Verdict.NOT_TRIED: "not tried"}
_MARK_WIDTH = 11


def proofs_document(provider: str, proofs: Sequence[Proof]) -> Document:
    """Return all of them as JSON."""
    return {"kind": "conformance", "provider": provider, "promises": [_row(proof) for proof in proofs]}


def proofs_sheet(proofs: Sequence[Proof]) -> str:
    """Return one line for every promise."""
    return sheet(("promise", "verdict", "detail"), map(_row, proofs))


def proof_line(proof: Proof) -> tuple[str, str]:
    """Return the mark of a promise, and what there is to say of it."""
    told = f"{proof.promise}: {proof.detail}" if proof.detail else proof.promise
    return (_MARKS[proof.verdict].ljust(_MARK_WIDTH), told)


def _row(proof: Proof) -> Document:
    return {"promise": proof.promise, "verdict": str(proof.verdict), "detail": proof.detail}
