"""The forms of an account: signing in, signing up, passwords, time zone, palaces, its end; and of a
model's permitted uses and its price.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth import authenticate, get_user_model
from django.contrib.auth.forms import AuthenticationForm, UsernameField
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import (
    password_validators_help_texts,
    validate_password,
)
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError, transaction
from django.forms.utils import flatatt
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from settings_app import throttling
from settings_app.accounts import LONGEST_NAME, people_called
from settings_app.models import MemorySettings, ModelUse
from settings_app.time_zone import grouped_zones, zone_names

TOO_MANY, TAKEN = "too_many_attempts", "taken"

NAME_HELP = f"Letters, digits and the signs @ . + - _, at most {LONGEST_NAME} of them."
NAME_INVALID = "There is another sign in this name, or a space."
NAME_TOO_LONG = f"This name is too long: {LONGEST_NAME} letters are the most."
NAME_TAKEN = "This name is taken. Choose another one, or sign in if it is yours."
NOT_THE_SAME = "The two passwords are not the same. Type the new one twice."
WRONG = "The name or the password is not right. Mind small and capital letters in the password."
NOT_YOUR_NAME = "This is not your name. Type it as it is written below the field."
WRONG_OLD = "This is not your password."
ALL, OWN, ONE = "all", "own", "one"
SUBJECT_NEEDED = "Write the name by which your program calls this person, its user_id."


def too_many_attempts(form: forms.BaseForm) -> bool:
    """Whether the form was refused unread, after too many attempts."""
    return any(form.has_error(name, TOO_MANY) for name in (NON_FIELD_ERRORS, *form.fields))


class SignInForm(AuthenticationForm):
    error_messages = {**AuthenticationForm.error_messages, "invalid_login": WRONG}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "Name"

    def clean_username(self) -> str:
        """The name as the account has it: phones write a capital letter first."""
        name: str = self.cleaned_data["username"]
        known = people_called(name).values_list("username", flat=True).first()
        return known or name

    def clean(self) -> dict[str, Any]:
        name = self.cleaned_data.get("username")
        if self.request is None or not name or not self.cleaned_data.get("password"):
            return super().clean()
        _count_attempt(self.request, name)
        cleaned = super().clean()
        throttling.forget_attempts(self.request, name)
        return cleaned


def _password_field(label: str, autocomplete: str, help_text: str = "") -> forms.CharField:
    widget = forms.PasswordInput(attrs={"autocomplete": autocomplete})
    return forms.CharField(label=label, strip=False, widget=widget, help_text=help_text)


class NewPasswordForm(forms.Form):
    """A new password, typed twice."""

    password = _password_field("Password", "new-password")
    again = _password_field("The same password again", "new-password")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].help_text = " ".join(password_validators_help_texts())

    def person(self) -> User:
        """The user, whose data the new password must not resemble."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        password, again = self.cleaned_data.get("password"), self.cleaned_data.get("again")
        if password:
            try:
                validate_password(password, self.person())
            except ValidationError as error:
                self.add_error("password", error)
        if password and again and password != again:
            self.add_error("again", NOT_THE_SAME)
        return self.cleaned_data


class SignUpForm(NewPasswordForm):
    field_order = ("username",)

    username = UsernameField(
        label="Name",
        max_length=LONGEST_NAME,
        validators=[UnicodeUsernameValidator(message=NAME_INVALID)],
        help_text=NAME_HELP,
        error_messages={"max_length": NAME_TOO_LONG},
    )

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if people_called(name).exists():
            raise ValidationError(NAME_TAKEN, TAKEN)
        return name

    def person(self) -> User:
        return User(username=self.cleaned_data.get("username", ""))

    def make_account(self) -> User | None:
        """Make the user; None, with an error at the name, if somebody has just taken it."""
        name, password = self.cleaned_data["username"], self.cleaned_data["password"]
        try:
            with transaction.atomic():
                return get_user_model().objects.create_user(name, password=password)
        except IntegrityError:
            self.add_error("username", ValidationError(NAME_TAKEN, TAKEN))
            return None

    def account_made_before(self, request: HttpRequest) -> User | None:
        """The account that an earlier submission of this form has made: the password matches."""
        if not self.has_error("username", TAKEN) or len(self.errors) > 1:
            return None
        name = self.data["username"].strip()
        try:
            throttling.count_attempt(request, name)
        except throttling.TooManyAttempts as error:
            self.add_error("username", ValidationError(str(error), TOO_MANY))
            return None
        known = people_called(name).values_list("username", flat=True).first()
        user = authenticate(request, username=known, password=self.cleaned_data["password"])
        if user is not None:
            throttling.forget_attempts(request, name)
        return user


class PasswordForm(NewPasswordForm):
    """Change the password, or set the first one after a one-time link."""

    field_order = ("old",)

    old = _password_field("Current password", "current-password")

    def __init__(self, request: HttpRequest, user: User, data: Any = None) -> None:
        super().__init__(data)
        self.request, self.user = request, user
        self.fields["password"].label = "New password"
        self.fields["again"].label = "The new password again"
        if not user.has_usable_password():
            del self.fields["old"]

    def person(self) -> User:
        return self.user

    def clean_old(self) -> str:
        old: str = self.cleaned_data["old"]
        _check_own_password(self.request, self.user, old)
        return old

    def save(self) -> None:
        self.user.set_password(self.cleaned_data["password"])
        self.user.save(update_fields=["password"])


class LeavingForm(forms.Form):
    """Confirms the deletion of an account: by its password, or its name if it has none."""

    password = _password_field("Your password", "current-password")
    name = forms.CharField(
        label="Your name, to confirm",
        max_length=LONGEST_NAME,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )

    def __init__(self, request: HttpRequest, user: User, data: Any = None) -> None:
        super().__init__(data)
        self.request, self.user = request, user
        self.fields["name"].help_text = f"It is {user.get_username()}."
        del self.fields["name" if user.has_usable_password() else "password"]

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        _check_own_password(self.request, self.user, password)
        return password

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self.user.get_username():
            raise ValidationError(NOT_YOUR_NAME)
        return name


class ZoneSelect(forms.Select):
    """Writes its several hundred options once, as Django renders a template for each."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        options = _zone_options()
        if not value or value in zone_names():
            options = options.replace(
                f'value="{value or ""}"', f'value="{value or ""}" selected', 1
            )
        shown = flatatt({**self.build_attrs(self.attrs, attrs), "name": name})
        return format_html("<select{}>{}</select>", shown, mark_safe(options))  # noqa: S308 - ours.


@cache
def _zone_options() -> str:
    groups = (
        format_html(
            '<optgroup label="{}">{}</optgroup>',
            region,
            format_html_join("", '<option value="{}">{}</option>', zones),
        )
        for region, zones in grouped_zones()
    )
    return "".join(['<option value="">UTC</option>', *groups])


class TimeZoneForm(forms.Form):
    time_zone = forms.ChoiceField(
        widget=ZoneSelect,
        label="Time zone",
        required=False,
        choices=lambda: [("", "UTC"), *grouped_zones()],
        help_text="Every time is shown in it, and “yesterday” is counted by it.",
        error_messages={"invalid_choice": "There is no such time zone. Choose one of the list."},
    )


def _check_own_password(request: HttpRequest, user: User, password: str) -> None:
    name = user.get_username()
    _count_attempt(request, name)
    if not user.check_password(password):
        raise ValidationError(WRONG_OLD)
    throttling.forget_attempts(request, name)


def _count_attempt(request: HttpRequest, name: str) -> None:
    try:
        throttling.count_attempt(request, name)
    except throttling.TooManyAttempts as error:
        raise ValidationError(str(error), TOO_MANY) from None


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
    # Not stripped: programs send exactly this name.
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
