"""Template filters for figures of usage."""

from __future__ import annotations

from decimal import Decimal

from django import template

register = template.Library()

CENTS = 2


@register.filter
def dollars(amount: Decimal) -> str:
    """`$1,204.50`, `$0.05`, `$0.00012`: with enough digits to differ from zero."""
    if not amount:
        return "$0"
    # The place of the first digit that is not zero, and one more.
    places = max(CENTS, 1 - amount.adjusted())
    whole, _, rest = f"{amount:,.{places}f}".partition(".")
    return f"${whole}.{rest[:CENTS]}{rest[CENTS:].rstrip('0')}"


@register.filter
def grouped(number: int) -> str:
    """`1,204`."""
    return f"{number:,}"
