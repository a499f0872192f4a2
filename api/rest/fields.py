"""What requests of several endpoints are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from rest_framework import serializers


# A null says nothing for a field that may be left out: many clients send all their fields. (As a
# docstring this would describe every schema that inherits it.)
class Shape(serializers.Serializer[Any]):
    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            data = {
                name: value
                for name, value in data.items()
                if value is not None or not self._may_be_left_out(name)
            }
        return super().to_internal_value(data)

    def _may_be_left_out(self, name: str) -> bool:
        field = self.fields.get(name)
        return field is not None and not field.required and not field.allow_null


class ExactText(serializers.CharField):
    """A text field that neither trims nor coerces its input."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class Choice(serializers.ChoiceField):
    """One of a few; its error says which there are."""

    def fail(self, key: str, **values: Any) -> NoReturn:
        if key == "invalid_choice":
            known = ", ".join(map(str, self.choices))
            raise serializers.ValidationError(f"This is none of {known}.", key)
        super().fail(key, **values)
