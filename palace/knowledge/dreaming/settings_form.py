"""The form of the settings of dreams: pages show it, the API validates by it."""

from __future__ import annotations

from typing import Any

from django import forms

from palace.models import Proposal
from settings_app.model_uses_form import BaseForm, limit_amount
from settings_app.models import MemorySettings

MOST_USD = 1000
MOST_TOKENS = 100_000_000

_USD = (
    f"Write an amount in dollars from 0 to {MOST_USD:,}, with a point and at most four digits "
    "after it, such as 0.25."
)
_TOKENS = f"Write a whole number of tokens from 0 to {MOST_TOKENS:,}."
_KIND = "There is no such kind of proposal. Choose from the list."


class DreamForm(BaseForm):
    dreams = forms.ChoiceField(
        label="What happens at night",
        choices=MemorySettings.Dreams.choices,
        error_messages=dict.fromkeys(
            ("required", "invalid_choice"), "Choose what happens at night from the list."
        ),
    )
    dream_trusted = forms.MultipleChoiceField(
        label="Changes made without asking",
        choices=Proposal.Kind.choices,
        required=False,
        error_messages={"invalid_choice": _KIND, "invalid_list": _KIND},
    )

    class Meta:
        model = MemorySettings
        fields = [
            "dreams",
            "dream_preferences",
            "dream_limit_usd",
            "dream_limit_tokens",
            "dream_trusted",
        ]
        labels = {
            "dream_preferences": "Infer preferences",
            "dream_limit_usd": "One dream may cost, in dollars",
            "dream_limit_tokens": "One dream may cost, in tokens",
        }

    def __init__(self, data: Any = None, *, instance: MemorySettings) -> None:
        # Without trailing zeros.
        dollars = instance.dream_limit_usd.normalize()
        super().__init__(data, instance=instance, initial={"dream_limit_usd": f"{dollars:f}"})
        limit_amount(self.fields["dream_limit_usd"], MOST_USD, _USD)
        limit_amount(self.fields["dream_limit_tokens"], MOST_TOKENS, _TOKENS)

    def store(self) -> None:
        """Call it with the row locked: see `settings_app.models.settings_for_update`."""
        changed = {name: getattr(self.instance, name) for name in self.Meta.fields}
        MemorySettings.objects.update_or_create(owner_id=self.instance.owner_id, defaults=changed)
