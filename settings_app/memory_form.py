"""The form of memory and model, and the choices it offers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator

from llm import embedding, providers, reranking, transport
from llm.embedding import EmbeddingModel
from llm.embedding.local_models import DIMENSIONS, MODEL_NAME, MULTILINGUAL_NAME
from llm.errors import ModelRefused
from llm.providers import PRESETS, Endpoint, Preset
from settings_app.models import MOST_TOP_K, MemorySettings

# Values in the form; see MemorySettings for those that are stored.
THIS_SERVER, NO_MODEL, OWN_ADDRESS = "server", "none", "address"


@dataclass(frozen=True, slots=True)
class RecipeChoice:
    """A recipe of recall as a choice of the form."""

    value: str
    label: str
    help: str


# The first is the default. Reranking by a model is a choice of its own.
RECIPES = (
    RecipeChoice(
        "default", "Thorough", "By meaning and by words, among the most drawers: finds the most."
    ),
    RecipeChoice(
        "fast",
        "Quick",
        "The same among a third as many: enough where a question has one answer.",
    ),
    RecipeChoice(
        "facts-first",
        "What is known first",
        "As thorough; most of what a model is given are facts.",
    ),
    RecipeChoice(
        "keyword",
        "By words alone",
        "Your question is not compared by meaning: what was said in other words is not found.",
    ),
)

# Shown with the one in use, so that people see what they can ask their operator for.
WELL_KNOWN_EMBEDDERS = (
    EmbeddingModel(providers.LOCAL, MODEL_NAME, DIMENSIONS),
    EmbeddingModel(providers.LOCAL, MULTILINGUAL_NAME, DIMENSIONS),
    EmbeddingModel("openai", "text-embedding-3-small", 1536),
    EmbeddingModel("openai", "text-embedding-3-large", 3072),
)


@dataclass(frozen=True, slots=True)
class ProviderChoice:
    """
    Attributes:
        refusal: Why a user may not choose it here; empty if they may.
        reranker: The default model for reranking; empty: the one that replies.
    """

    value: str
    label: str
    takes_address: bool = False
    takes_model: bool = True
    refusal: str = ""
    reranker: str = ""


def provider_choices() -> Iterator[ProviderChoice]:
    operators = operators_endpoint()
    yield ProviderChoice(
        THIS_SERVER,
        f"This server’s model: {operators or 'none is set'}",
        takes_model=False,
        reranker=providers.small_model(operators) if operators else "",
    )
    yield ProviderChoice(NO_MODEL, "No model", takes_model=False)
    for preset in PRESETS.values():
        yield ProviderChoice(
            preset.name,
            preset.label,
            takes_address=not preset.base_url,
            refusal=_refusal(preset),
            reranker=preset.small_model,
        )
    yield ProviderChoice(OWN_ADDRESS, "Another address", takes_address=True)


def operators_endpoint() -> Endpoint | None:
    """The operator's model; None also if it is misconfigured, which stops the start."""
    try:
        return providers.deployment_endpoint()
    except ModelRefused:
        return None


def own_reranker() -> str:
    """The name of this server's local reranker, used without a model; empty without one."""
    folder = reranking.deployment_reranker()
    return folder.name if folder else ""


def recipe_of(stored: str) -> str:
    """The form's choice for the stored recipe; the default if it is no longer offered."""
    offered = [each.value for each in RECIPES]
    return stored if stored in offered else offered[0]


def choice_of(provider: str) -> str:
    """The form's choice for the stored provider."""
    if "://" not in provider:
        return provider or THIS_SERVER
    host = urlsplit(provider).hostname or ""
    return "azure" if host.endswith(".openai.azure.com") else OWN_ADDRESS


def checked_address(address: str) -> str:
    """A base URL that a user may have chosen.

    Raises:
        ModelRefused: it is invalid, contains a secret, or is in a forbidden network.
    """
    try:
        parts = urlsplit(address)
        is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole or not address.isprintable() or " " in address:
        raise ModelRefused(
            "This is not an address: write one like https://models.example.org/v1, the part before "
            "/chat/completions."
        )
    if "@" in parts.netloc or "?" in address or "#" in address:
        raise ModelRefused(
            "Write the address without a name, a password and anything after a question mark; "
            "the key has a field of its own."
        )
    transport.check_address(address)
    return address


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    model: EmbeddingModel
    in_use: bool

    @property
    def value(self) -> str:
        return f"{self.model.provider} {self.model.name} {self.model.dimensions}"

    @property
    def label(self) -> str:
        if self.model.is_local:
            return f"{self.model.name}, on this server"
        preset = PRESETS.get(self.model.provider.lower())
        where = preset.label if preset else providers.shown(self.model.provider)
        return f"{self.model.name}, at {where}"


def embedder_choices() -> list[EmbedderChoice]:
    """The embedding models, the one in use first."""
    in_use = embedding.deployment_model()
    others = [EmbedderChoice(model, in_use=False) for model in WELL_KNOWN_EMBEDDERS]
    return [
        EmbedderChoice(in_use, in_use=True),
        *(choice for choice in others if choice.model != in_use),
    ]


def _refusal(preset: Preset) -> str:
    try:
        transport.check_address(preset.base_url)
    except ModelRefused as error:
        return str(error)
    return ""


MODEL_FIELDS = ("provider", "base_url", "model", "api_key")
# The fields of each page; a page leaves those of the other unchanged.
ON_GENERAL_PAGE = ("enabled", "auto_mine", "top_k", "recipe", "embedding_model")
ON_MODEL_PAGE = (*MODEL_FIELDS, "use_rerank", "rerank_model")

_TOP_K = f"Write a whole number from 1 to {MOST_TOP_K}."
_BAD_KEY = (
    "This is not a whole API key: it has a space, a line break or a letter that no key has. "
    "Copy it again."
)


if TYPE_CHECKING:
    BaseForm = forms.ModelForm[MemorySettings]
else:  # Django's own has no parameter when it runs.
    BaseForm = forms.ModelForm


class MemoryForm(BaseForm):
    """A user's settings of memory and model.

    The saved key is never part of it: the field is for a new one.
    """

    provider = forms.ChoiceField(
        label="Provider",
        error_messages={"invalid_choice": "There is no such provider. Choose one of the list."},
    )
    base_url = forms.CharField(label="Address", max_length=500, required=False)
    api_key = forms.CharField(
        label="API key",
        max_length=2000,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "spellcheck": "false"}),
    )
    recipe = forms.ChoiceField(
        label="Search method",
        choices=[(each.value, each.label) for each in RECIPES],
        error_messages=dict.fromkeys(
            ("required", "invalid_choice"), "Choose a search method from the list."
        ),
    )
    embedding_model = forms.ChoiceField(label="Embedding model")

    class Meta:
        model = MemorySettings
        fields = [
            "enabled",
            "top_k",
            "auto_mine",
            "recipe",
            "use_rerank",
            "rerank_model",
            "model",
        ]
        labels = {
            "enabled": "Use memory",
            "top_k": "Memories for each reply",
            "auto_mine": "Remember conversations on its own",
            "use_rerank": "Rerank the top 20 with a model",
            "rerank_model": "Reranking model",
            "model": "Model",
        }

    def __init__(self, data: Any = None, *, instance: MemorySettings) -> None:
        saved = instance.provider
        super().__init__(
            data,
            instance=instance,
            initial={
                "provider": choice_of(saved),
                "recipe": recipe_of(instance.recipe),
                "base_url": saved if "://" in saved else "",
                "embedding_model": embedder_choices()[0].value,
            },
        )
        self._saved_provider, self._saved_key = saved, instance.sealed_key
        self.providers = list(provider_choices())
        self.recipes = RECIPES
        self.own_reranker = own_reranker()
        self.embedders = embedder_choices()
        _limit(self.fields["top_k"])
        _offer(self.fields["provider"], [(each.value, each.label) for each in self.providers])
        in_use = self.embedders[0]
        _offer(self.fields["embedding_model"], [(in_use.value, in_use.label)])
        self.fields["embedding_model"].error_messages |= dict.fromkeys(
            ("required", "invalid_choice"),
            f"Only {in_use.model.name} can be chosen: every vector of this server is made by it.",
        )
        for name in ("model", "rerank_model", "base_url"):
            self.fields[name].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}

    def clean_api_key(self) -> str:
        key: str = self.cleaned_data["api_key"]
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ValidationError(_BAD_KEY)
        return key

    def clean(self) -> dict[str, Any]:
        super().clean()
        chosen = self.cleaned_data.get("provider")
        if chosen is not None:
            self.instance.provider = self._target(chosen)
            self._settle_key()
            if self.asks_elsewhere:
                self._check_model()
            elif not self.has_error("model"):
                self.cleaned_data["model"] = ""
        return self.cleaned_data

    @property
    def asks_elsewhere(self) -> bool:
        own = {MemorySettings.OF_THIS_SERVER, MemorySettings.NO_MODEL}
        return self.instance.provider not in own

    @property
    def moves(self) -> bool:
        """Whether another provider or address is chosen than the saved one."""
        return self.instance.provider != self._saved_provider

    @property
    def has_saved_key(self) -> bool:
        return bool(self._saved_key)

    @property
    def key_was_typed(self) -> bool:
        """Whether a key was typed. It is not sent back: after an error it is typed again."""
        return self.is_bound and bool(self.data.get("api_key"))

    @property
    def drops_key(self) -> bool:
        """Whether saving removes the saved key without a new one."""
        return bool(self._saved_key) and not self.instance.sealed_key

    @property
    def ignores_key(self) -> bool:
        """Whether a key was typed that the chosen provider does not use."""
        return bool(self.cleaned_data.get("api_key")) and not self.asks_elsewhere

    @property
    def model_errors(self) -> list[str]:
        """The errors that prevent a test of the model."""
        return [str(error) for name in MODEL_FIELDS for error in self.errors.get(name, [])]

    def store(self) -> None:
        """Call it with the row locked: see `settings_app.models.settings_for_update`."""
        changed = {name: getattr(self.instance, name) for name in self.Meta.fields}
        changed |= {"provider": self.instance.provider, "sealed_key": self.instance.sealed_key}
        if self.moves:
            # A new provider is sent nothing before the owner agrees.
            changed |= {"awaits_consent": self.asks_elsewhere}
        if self.moves or "model" in self.changed_data:
            changed |= {"price_input": None, "price_output": None}
        MemorySettings.objects.update_or_create(owner_id=self.instance.owner_id, defaults=changed)

    def _target(self, chosen: str) -> str:
        """The stored values for the provider chosen in the form."""
        choice = next(each for each in self.providers if each.value == chosen)
        if choice.refusal:
            self.add_error("provider", choice.refusal)
        if chosen == THIS_SERVER:
            return MemorySettings.OF_THIS_SERVER
        if not choice.takes_address:
            return chosen
        address: str = self.cleaned_data.get("base_url", "")
        if not address:
            self.add_error("base_url", _address_wanted(chosen))
        elif not self.has_error("base_url"):
            try:
                checked_address(address)
            except ModelRefused as error:
                self.add_error("base_url", str(error))
        return address

    def _settle_key(self) -> None:
        """Keep or replace the key; one for another address is removed."""
        typed = self.cleaned_data.get("api_key", "")
        if typed and self.asks_elsewhere:
            self.instance.set_key(typed)
        elif self.moves:
            self.instance.set_key("")

    def _check_model(self) -> None:
        if not self.cleaned_data.get("model") and not self.has_error("model"):
            self.add_error("model", "Name the model, as its provider writes it.")
        preset = PRESETS.get(self.instance.provider)
        # With the same provider, the rest can be saved without a key, as after removing it.
        lacks_key = bool(preset and preset.needs_key and self.moves and not self.instance.has_key)
        if preset and lacks_key and not self.has_error("api_key"):
            self.add_error("api_key", f"{preset.label} needs an API key.")


def _limit(field: forms.Field) -> None:
    field.error_messages |= {"required": _TOP_K, "invalid": _TOP_K}
    field.validators = [MinValueValidator(1, _TOP_K), MaxValueValidator(MOST_TOP_K, _TOP_K)]
    field.widget.attrs |= {"min": 1, "max": MOST_TOP_K, "inputmode": "numeric"}


def _offer(field: forms.Field, pairs: list[tuple[str, str]]) -> None:
    cast(forms.ChoiceField, field).choices = pairs


def _address_wanted(chosen: str) -> str:
    preset = PRESETS.get(chosen)
    hint = preset.hint.rsplit("instead of the name: ", 1)[-1] if preset else ""
    return f"Write your own address: {hint}." if hint else "Write the address of the model."
