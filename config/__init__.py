"""The project's wiring: settings, services, processes, addresses."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
