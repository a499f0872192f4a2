"""The task queue: Celery on Redis. Tasks are safe to repeat, so they are acknowledged late."""

from __future__ import annotations

import os
import warnings

from celery import Celery

# Celery warns of root because pickled messages can run code. Ours are JSON.
warnings.filterwarnings("ignore", "You're running the worker with superuser privileges")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("loci")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
