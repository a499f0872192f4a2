"""The ASGI door, served by uvicorn."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

from config.uploads import limited

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = limited(get_asgi_application())
