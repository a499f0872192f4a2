"""The form of a model's permitted uses, and of its price."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError

from settings_app.models import MemorySettings, ModelUse

MOST_USD = 10_000
# Decimal places of a dollar, as in the table.
PLACES = 4

_PRICE = (
    f"Write an amount in dollars from 0 to {MOST_USD:,}, with a point and at most four digits "
    "after it, such as 0.25."
)
_USE = "There is no such use. Choose from the list."

if TYPE_CHECKING:
    BaseForm = forms.ModelForm[MemorySettings]
else:  # Django's own has no parameter when it runs.
    BaseForm = forms.ModelForm


class UsesForm(BaseForm):
    uses = forms.MultipleChoiceField(
        label="What the model may be asked for",
        choices=ModelUse.choices,
        required=False,
        error_messages={"invalid_choice": _USE, "invalid_list": _USE},
    )

    class Meta:
        model = MemorySettings
        fields = ("uses", "price_input", "price_output")
        labels = {
            "price_input": "A million tokens it reads, in dollars",
            "price_output": "A million tokens it writes, in dollars",
        }
        help_texts = dict.fromkeys(("price_input", "price_output"), "")

    def __init__(self, data: Any = None, *, instance: MemorySettings) -> None:
        prices = {name: getattr(instance, name) for name in ("price_input", "price_output")}
        # Without zeros at the end.
        shown = {
            name: "" if price is None else f"{price.normalize():f}"
            for name, price in prices.items()
        }
        super().__init__(data, instance=instance, initial=shown)
        for name in prices:
            limit_amount(self.fields[name], MOST_USD, _PRICE)

    def clean(self) -> dict[str, Any]:
        super().clean()
        given = [
            self.cleaned_data.get(name) is not None for name in ("price_input", "price_output")
        ]
        if any(given) and not all(given) and not self.errors:
            missing = "price_output" if given[0] else "price_input"
            self.add_error(missing, "Write both prices, or none.")
        return self.cleaned_data

    def store(self, *, agrees: bool) -> None:
        """Call it with the row locked: see `settings_app.models.settings_for_update`.

        Args:
            agrees: The owner agrees to send the provider what these uses need.
        """
        changed = {name: getattr(self.instance, name) for name in self.Meta.fields}
        if agrees:
            changed |= {"awaits_consent": False}
        MemorySettings.objects.update_or_create(owner_id=self.instance.owner_id, defaults=changed)


def limit_amount(field: forms.Field, most: int, sentence: str) -> None:
    """From 0 to `most`, with the same error message for every invalid value."""

    def check(value: Decimal | int) -> None:
        if not 0 <= value <= most or round(value, PLACES) != value:
            raise ValidationError(sentence)

    field.error_messages |= {"required": sentence, "invalid": sentence}
    field.validators = [check]
    field.widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
