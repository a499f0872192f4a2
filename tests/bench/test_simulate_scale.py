"""`manage.py simulate_scale`: figures are measured, and multiplied as the assumptions say."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from bench.management.commands.simulate_scale import Assumed, Measured, needs

MEASURED = Measured(
    bytes_a_message=5_000,
    bytes_a_palace=1_000,
    mine_ms=20,
    recall_ms=12,
    cache_bytes_a_message=1_000,
    web_mb=300,
)
# Each palace is used each day, evenly.
EVEN = Assumed(messages=1_000, new_messages=10, recalls=10, used_daily=1, peak=1, used_at_once=0.1)


def test_needs_follow_from_what_was_measured():
    found = needs(864_000, MEASURED, EVEN)
    assert found["database_gb"] == 4400  # 864,000 * 5,001,000 bytes are 4,321 GB.
    assert found["database_nodes"] == 3
    assert (found["recalls_per_s"], found["mined_per_s"]) == (100, 100)
    assert found["web_cores"] == 2  # 100 a second, 12 ms each, of 60 % of a core.
    assert found["worker_cores"] == 4
    assert found["web_memory_gb"] == 87  # 0.6 for the processes, 86.4 for what is asked.
    assert found["machines_of_web_and_workers"] == 1


def test_a_hundred_times_as_many_need_a_hundred_times_as_much():
    few, many = (needs(number, MEASURED, EVEN) for number in (10**5, 10**7))
    assert many["database_gb"] == pytest.approx(100 * few["database_gb"])


def test_too_little_to_measure_is_refused():
    with pytest.raises(CommandError, match="at least 100"):
        call_command("simulate_scale", messages=5)


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_it_measures_this_machine(capsys):
    call_command("simulate_scale", messages=200, palaces=[1000])
    said = json.loads(capsys.readouterr().out)
    # A process that has room does not grow.
    assert said["measured"].pop("cache_bytes_a_message") >= 0
    assert all(value > 0 for value in said["measured"].values())
    assert said["assumed"]["messages"] == 2_000
    assert said["needs"][0]["database_gb"] > 0
