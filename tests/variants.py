"""`@pytest.mark.some(3)`: `make test` runs three of a test's variants, `make test-all` all."""

from __future__ import annotations

from collections import defaultdict

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    variants = defaultdict(list)
    for item in items:
        if marker := item.get_closest_marker("some"):
            variants[item.nodeid.partition("[")[0], *marker.args].append(item)
    for (_, number), each in variants.items():
        # By name: whatever order they are to run in, it is the same ones.
        each.sort(key=lambda item: item.nodeid)
        chosen = {len(each) * place // number for place in range(number)}
        for place, item in enumerate(each):
            if place not in chosen:
                item.add_marker(pytest.mark.exhaustive)
