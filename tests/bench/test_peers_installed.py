"""The libraries themselves, where `manage.py bench_peers --install` has brought them here."""

from __future__ import annotations

import pytest
from django.conf import settings as django_settings

from bench.peers.systems import PEERS, peer_process
from tests.bench.test_peers import NORA

HERE = django_settings.BASE_DIR / ".loci"


@pytest.mark.parametrize("name", PEERS)
def test_a_library_finds_what_was_said(name, settings):
    settings.LOCI_HOME = HERE
    peer = PEERS[name]
    if not peer.is_installed():
        pytest.skip(f"{peer.title} is not installed; see docs/peers.md")
    with peer_process(peer) as outside:
        outside.take_in(NORA)
        for question in NORA.questions:
            assert outside.ask(question, 4).turns[0] in question.gold_turns
        weight = outside.weigh()
        assert weight.disk > 0
        assert weight.memory > 50 * 2**20
