"""A cloud of the other shape, in memory: provision, list, terminate by an id."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from providers.nodes import Node


class NodeCloud:
    """Does as it is told, and can be told to go wrong. Passes for a NodeProvider."""

    def __init__(self, name="other"):
        self.name = name
        self.nodes = []
        self.terminated = []
        self.requests = []
        self.fails = {}
        """What to raise, by the name of the method."""
        self.keeps_labels = True
        self._numbered = 0

    def add(self, **fields):
        self._numbered += 1
        node = Node(**({"id": f"n-{self._numbered}", "region": "oslo", "labels": {}} | fields))
        self.nodes.append(node)
        return node

    def change(self, node_id, **fields):
        self.nodes = [replace(node, **fields) if node.id == node_id else node for node in self.nodes]

    def provision(self, request):
        self.requests.append(request)
        self._fail("provision")
        labels = request.labels if self.keeps_labels else MappingProxyType({})
        return self.add(
            region=request.region,
            zone=request.zone or "oslo-a",
            instance_type=request.instance_type,
            status="provisioning",
            labels=labels,
        )

    def terminate(self, node_id):
        self.terminated.append(node_id)
        self._fail("terminate")
        self.change(node_id, status="terminating")

    def list(self):
        self._fail("list")
        return list(self.nodes)

    def _fail(self, method):
        if method in self.fails:
            raise self.fails[method]


class PricedNodeCloud(NodeCloud):
    """The same, with a price list."""

    types = ()

    def list_instance_types(self):
        self._fail("list_instance_types")
        return self.types
