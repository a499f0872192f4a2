"""Fast tags and filters for rows of lists: addresses, times, short texts and figures.

Django's own take ten times as long, and a page has hundreds.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from django import template
from django.template.defaultfilters import stringfilter, truncatechars
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timezone import is_aware, localtime

from settings_app.fast_reverse import address_of
from settings_app.pages import version_of

register = template.Library()

MONTHS = tuple("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())
CENTS = 2


@register.simple_tag
def address(name: str, *parts: UUID | str) -> str:
    """As `{% url %}`, for a page of one thing or of all."""
    return address_of(name, *parts)


@register.simple_tag
def version(*values: object) -> SafeString:
    """In a form: what it was made from, for `settings_app.pages.is_stale`."""
    return format_html('<input type="hidden" name="version" value="{}">', version_of(*values))


@register.filter
def at_minute(moment: datetime | None) -> SafeString | str:
    """`<time>`: `3 Mar 2025, 14:05`, in the reader's time zone; nothing without a time."""
    if moment is None:
        return ""
    local = _local(moment)
    shown = f"{day_of(local)}, {local.hour:02}:{local.minute:02}"
    return _time(local, shown)


@register.filter
def on_day(moment: date | None) -> SafeString | str:
    """`<time>`: `3 Mar 2025`, in the reader's time zone; nothing without a time."""
    if moment is None:
        return ""
    local = _local(moment) if isinstance(moment, datetime) else moment
    return _time(local, day_of(local))


@register.filter(is_safe=True)
@stringfilter
def shortened(text: str, most: int) -> str:
    """The text, cut to so many characters as `truncatechars` does, if it is longer."""
    return text if len(text) <= most else truncatechars(text, most)


def _time(local: date, shown: str) -> SafeString:
    return mark_safe(f'<time datetime="{local.isoformat()}">{shown}</time>')  # noqa: S308 - numbers.


@register.filter
def counted(number: int, noun: str) -> str:
    """`1 room`, `1,204 rooms`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


@register.filter
def grouped(number: int) -> str:
    """`1,204`."""
    return f"{number:,}"


@register.filter
def dollars(amount: Decimal) -> str:
    """`$1,204.50`, `$0.05`, `$0.00012`: with enough digits to differ from zero."""
    if not amount:
        return "$0"
    # The place of the first digit that is not zero, and one more.
    places = max(CENTS, 1 - amount.adjusted())
    whole, _, rest = f"{amount:,.{places}f}".partition(".")
    return f"${whole}.{rest[:CENTS]}{rest[CENTS:].rstrip('0')}"


def _local(moment: datetime) -> datetime:
    return localtime(moment) if is_aware(moment) else moment


def day_of(local: date) -> str:
    """`3 Mar 2025`."""
    return f"{local.day} {MONTHS[local.month - 1]} {local.year:04}"
