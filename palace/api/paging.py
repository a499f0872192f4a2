"""Lists that go on: a cursor stands still when rows are added before it."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination


class Pages(CursorPagination):
    """`results` with addresses of the `next` and `previous` pages; newest first unless said."""

    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"
    ordering = "-pk"
