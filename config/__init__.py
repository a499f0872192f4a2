"""The project's wiring: settings, services, processes, URLs."""

import gc

from config.celery import app as celery_app

__all__ = ["celery_app"]

# Python looks for cycles of garbage each 700 objects. A start makes 500,000 objects that all stay,
# and a recall or a mined message some ten thousand that go without: with these thresholds a start
# takes a fifth less processor time, and what comes after a twelfth less.
gc.set_threshold(50_000, 20, 20)
