"""The form that adds a webhook."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from palace.errors import BadInput
from palace.models import Webhook
from palace.webhooks import addresses, registration

SUBJECT_NEEDED = "Write the name by which your program calls this person, its user_id."


class WebhookForm(forms.Form):
    """Where to tell, of what, and of whose palace."""

    class Palaces:
        ALL, OWN, ONE = "all", "own", "one"

    url = forms.CharField(
        label="Address",
        max_length=addresses.MOST_CHARS,
        help_text="Your program's, such as https://example.org/told. It is sent POST requests.",
        error_messages={"required": "Write the address that is to be told."},
        widget=forms.URLInput(attrs={"autocomplete": "off"}),
    )
    events = forms.MultipleChoiceField(
        label="Tell it of",
        choices=Webhook.Event.choices,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one, or there is nothing to tell."},
    )
    palaces = forms.ChoiceField(
        label="Where?",
        choices=[
            (Palaces.ALL, "In all of your palaces: yours and those of your program's people"),
            (Palaces.OWN, "In your own palace only"),
            (Palaces.ONE, "In the palace of one person only"),
        ],
        widget=forms.RadioSelect,
    )
    # To the letter, as programs send it.
    subject = forms.CharField(
        label="That person's user_id",
        max_length=200,
        required=False,
        strip=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, data: Any = None) -> None:
        initial = {"events": Webhook.Event.values[:2], "palaces": self.Palaces.ALL}
        super().__init__(data, initial=initial)

    def clean(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        if cleaned.get("palaces") == self.Palaces.ONE and not cleaned.get("subject", "").strip():
            self.add_error("subject", ValidationError(SUBJECT_NEEDED))
        return cleaned

    def add_for(self, owner_id: int) -> tuple[Webhook, str] | None:
        """The webhook and its secret; None, with an error beside the address, if it is refused."""
        given = self.cleaned_data
        which: dict[str, str | None] = {self.Palaces.ALL: None, self.Palaces.OWN: ""}
        subject = which.get(given["palaces"], given["subject"])
        try:
            return registration.add(owner_id, given["url"], given["events"], subject)
        except BadInput as error:
            self.add_error("url", str(error).removeprefix("url: "))
            return None
