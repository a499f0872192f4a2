"""The part of a form that chooses palaces: all of the owner's, the own one, or one person's."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

ALL, OWN, ONE = "all", "own", "one"
SUBJECT_NEEDED = "Write the name by which your program calls this person, its user_id."


class PalaceChoiceForm(forms.Form):
    """A form with a choice of palaces."""

    palaces = forms.ChoiceField(
        label="Where?",
        choices=[
            (ALL, "In all of your palaces: yours and those of your program's people"),
            (OWN, "In your own palace only"),
            (ONE, "In the palace of one person only"),
        ],
        widget=forms.RadioSelect,
    )
    # Not stripped: programs send it exactly so.
    subject = forms.CharField(
        label="That person's user_id",
        max_length=200,
        required=False,
        strip=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        if cleaned.get("palaces") == ONE and not cleaned.get("subject", "").strip():
            self.add_error("subject", ValidationError(SUBJECT_NEEDED))
        return cleaned

    def chosen_subject(self) -> str | None:
        """The subject of the palace: None for all, empty for the owner's own."""
        which: dict[str, str | None] = {ALL: None, OWN: ""}
        return which.get(self.cleaned_data["palaces"], self.cleaned_data["subject"])
