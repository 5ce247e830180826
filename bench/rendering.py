"""Machines and answers as EC2 writes them: four spaces a level, about 11 KB and 165 elements a machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

from bench.fleet import ACCOUNT, Machine

CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}

_INSTANCE = Path(__file__).with_name("instance.xml").read_text(encoding="utf-8")
_TAG = "{0}<item>\n{0}    <key>%s</key>\n{0}    <value>%s</value>\n{0}</item>\n".format(" " * 24)
_LIFECYCLE = "{0}<instanceLifecycle>spot</instanceLifecycle>\n{0}<spotInstanceRequestId>%s</spotInstanceRequestId>\n"
_SPOT = _LIFECYCLE.format(" " * 20)
_TYPES = ("g5.xlarge", "g6.2xlarge", "c7i.4xlarge", "m7g.large", "p4d.24xlarge")
_REQUEST_ID = "5f0c8d8e-2b77-4d3c-9d0a-b3f1e0c4a6d2"


def instance_xml(machine: Machine, state: str) -> bytes:
    """Return the reservation of one machine."""
    octets = [str(machine.number >> shift & 255) for shift in (16, 8, 0)]
    text = _INSTANCE % {
        "account": ACCOUNT,
        "id": machine.instance_id,
        "digits": machine.instance_id[3:],
        "code": CODES[state],
        "state": state,
        "region": machine.region,
        "zone": machine.zone,
        "type": _TYPES[machine.number % len(_TYPES)],
        "launched": machine.launched_at.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "dashed": "-".join(octets),
        "dotted": ".".join(octets),
        "lifecycle": _SPOT % spot_request_id(machine.instance_id) if machine.spot else "",
        "tags": "".join(_TAG % (escape(key), escape(value)) for key, value in machine.tags()),
    }
    return text.encode()


def spot_request_id(instance_id: str) -> str:
    """Return the id of the request that launched it."""
    return f"sir-{instance_id[3:11]}"


def ec2_answer(action: str, parts: Iterable[bytes], token: str | None = None) -> bytes:
    """Return a whole answer; the parts are indented lines."""
    head = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">\n'
        f"    <requestId>{_REQUEST_ID}</requestId>\n"
    )
    tail = f"    <nextToken>{token}</nextToken>\n" if token else ""
    return b"".join((head.encode(), *parts, f"{tail}</{action}Response>".encode()))


def listed(element: str, items: Iterable[bytes]) -> Iterable[bytes]:
    """Yield a list of EC2's: an empty tag if nothing is in it."""
    found = list(items)
    if not found:
        yield f"    <{element}/>\n".encode()
        return
    yield f"    <{element}>\n".encode()
    yield from found
    yield f"    </{element}>\n".encode()


def item(**leaves: object) -> bytes:
    """Return one element of a list; a leaf may hold leaves."""
    return f"        <item>\n{_leaves(leaves, 3)}        </item>\n".encode()


def leaf(name: str, value: object) -> bytes:
    """Return one element of the answer itself."""
    return _leaves({name: value}, 1).encode()


def query_answer(service: str, action: str, result: str) -> bytes:
    """Return an answer of STS or IAM, which wrap what they say."""
    told = f"  <{action}Result>{result}</{action}Result>\n"
    metadata = f"  <ResponseMetadata><RequestId>{_REQUEST_ID}</RequestId></ResponseMetadata>\n"
    namespace = f"https://{service}.amazonaws.com/doc/"
    return f'<{action}Response xmlns="{namespace}">\n{told}{metadata}</{action}Response>'.encode()


def error_answer(code: str, message: str) -> bytes:
    """Return an error as EC2 tells it."""
    start = '<?xml version="1.0" encoding="UTF-8"?>\n'
    told = f"<Errors><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error></Errors>"
    return f"{start}<Response>{told}<RequestID>{_REQUEST_ID}</RequestID></Response>".encode()


def _leaves(leaves: dict[str, object], depth: int) -> str:
    indent = "    " * depth
    lines = []
    for name, value in leaves.items():
        if isinstance(value, dict):
            lines.append(f"{indent}<{name}>\n{_leaves(value, depth + 1)}{indent}</{name}>\n")
        else:
            lines.append(f"{indent}<{name}>{escape(str(value))}</{name}>\n")
    return "".join(lines)
