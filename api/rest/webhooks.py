"""Webhooks over REST: /v1/webhooks/, for keys with the scope “admin”."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.access import subject_for
from api.rest.base import ApiView
from api.rest.parsing import Choice
from api.rest.problems import not_found
from palace import webhooks
from palace.models import Webhook, WebhookDelivery
from palace.webhooks.delivery import deliver_webhooks

Shape = serializers.Serializer[Any]
TAG = ["webhooks"]
# The number of latest deliveries listed.
LATEST = 100

ADMIN: Mapping[str, str] = dict.fromkeys(("GET", "POST", "PATCH", "DELETE"), "admin")


def events_field(**options: Any) -> serializers.ListField:
    child = Choice(Webhook.Event.values)
    return serializers.ListField(child=child, allow_empty=False, max_length=10, **options)


class WebhookRequest(Shape):
    url = serializers.CharField(
        max_length=webhooks.MOST_URL_CHARS, help_text="An https URL that receives POST requests."
    )
    events = events_field(help_text="The events to send.")
    user_id = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="Send only this palace's events; by default those of all palaces of the key.",
    )


class WebhookChanged(Shape):
    url = serializers.CharField(required=False, max_length=webhooks.MOST_URL_CHARS)
    events = events_field(required=False)
    enabled = serializers.BooleanField(
        required=False, help_text="true: resume, pending deliveries included. false: stop."
    )


class WebhookShown(Shape):
    id = serializers.UUIDField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.CharField())
    user_id = serializers.CharField(allow_null=True, help_text="Null for your own palace, or all.")
    all_palaces = serializers.BooleanField(
        help_text="Whether it gets the events of all your palaces."
    )
    enabled = serializers.BooleanField()
    disabled_why = serializers.CharField(allow_null=True)
    failing_since = serializers.DateTimeField(allow_null=True, help_text="Nothing arrived since.")
    former_secret_until = serializers.DateTimeField(
        allow_null=True, help_text="Until then the secret before the present one signs, too."
    )
    created_at = serializers.DateTimeField()


class WebhookMade(WebhookShown):
    secret = serializers.CharField(
        required=False, help_text="By it you know what is ours. It is shown this once only."
    )


class Webhooks(Shape):
    webhooks = WebhookShown(many=True)


class DeliveryShown(Shape):
    id = serializers.CharField(help_text="As the header `webhook-id` has it.")
    event = serializers.CharField()
    state = serializers.ChoiceField(["waiting", "delivered", "failed"])
    attempts = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True, help_text="Of the last answer.")
    said = serializers.CharField(help_text="The result of the last attempt.")
    created_at = serializers.DateTimeField()
    due_at = serializers.DateTimeField(allow_null=True, help_text="When it is sent next.")
    delivered_at = serializers.DateTimeField(allow_null=True)


class Deliveries(Shape):
    deliveries = DeliveryShown(many=True)


class _ShowsSecret(ApiView):
    _secret: str | None = None

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Add the secret last: the response stored for idempotency must not contain it."""
        finished = super().finalize_response(request, response, *args, **kwargs)
        if self._secret is not None and finished.status_code == 201:
            finished.data = {**finished.data, "secret": self._secret}
        return finished


class WebhooksView(_ShowsSecret):
    scopes: ClassVar[Mapping[str, str]] = ADMIN

    @extend_schema(tags=TAG, responses={200: Webhooks})
    def get(self, request: Request) -> Response:
        """List your webhooks, newest first; a key for one palace sees only that palace's."""
        return Response({"webhooks": [_shown(each) for each in _of(self)]})

    @extend_schema(tags=TAG, request=WebhookRequest, responses={201: WebhookMade})
    def post(self, request: Request) -> Response:
        """Create a webhook for a URL.

        The answer has the secret that its messages are signed by; it is not shown again, nor
        where the request is repeated with the same `Idempotency-Key`.
        """
        params = self.read(WebhookRequest)
        user_id = params.get("user_id")
        subject = subject_for(self.key, user_id) if user_id is not None else self.key.subject
        webhook, self._secret = webhooks.add(
            self.key.owner_id, params["url"], params["events"], subject
        )
        return Response(_shown(webhook), 201)


class WebhookView(ApiView):
    scopes: ClassVar[Mapping[str, str]] = ADMIN

    @extend_schema(tags=TAG, responses={200: WebhookShown})
    def get(self, request: Request, uuid: UUID) -> Response:
        """Get a webhook and its status."""
        return Response(_shown(_one(self, uuid)))

    @extend_schema(tags=TAG, request=WebhookChanged, responses={200: WebhookShown})
    def patch(self, request: Request, uuid: UUID) -> Response:
        """Change a webhook's URL or events, or disable and enable it."""
        params = self.read(WebhookChanged)
        webhook = _one(self, uuid)
        webhooks.change(webhook, url=params.get("url"), events=params.get("events", ()))
        if "enabled" in params:
            webhooks.enable(webhook) if params["enabled"] else webhooks.disable(webhook)
        return Response(_shown(webhook))

    @extend_schema(tags=TAG, request=None, responses={204: None})
    def delete(self, request: Request, uuid: UUID) -> Response:
        """Delete a webhook with its pending deliveries."""
        _one(self, uuid).delete()
        return Response(status=204)


class WebhookTestView(ApiView):
    scopes: ClassVar[Mapping[str, str]] = ADMIN

    @extend_schema(tags=TAG, request=None, responses={202: DeliveryShown})
    def post(self, request: Request, uuid: UUID) -> Response:
        """Send an event of type `test`; its deliveries show the result."""
        delivery = webhooks.try_out(_one(self, uuid))
        deliver_webhooks.delay()
        return Response(_delivery(delivery), 202)


class WebhookSecretView(_ShowsSecret):
    scopes: ClassVar[Mapping[str, str]] = ADMIN

    @extend_schema(tags=TAG, request=None, responses={201: WebhookMade})
    def post(self, request: Request, uuid: UUID) -> Response:
        """Replace the secret that messages are signed by.

        For a day, until `former_secret_until`, each message has two signatures, by the new secret
        and by the former one.
        """
        webhook = _one(self, uuid)
        self._secret = webhooks.replace_secret(webhook)
        return Response(_shown(webhook), 201)


class DeliveriesView(ApiView):
    scopes: ClassVar[Mapping[str, str]] = ADMIN

    @extend_schema(tags=TAG, responses={200: Deliveries})
    def get(self, request: Request, uuid: UUID) -> Response:
        """List the latest deliveries, newest first: up to a hundred, of the last seven days."""
        latest = _one(self, uuid).deliveries.order_by("-pk")[:LATEST]
        return Response({"deliveries": [_delivery(each) for each in latest]})


def _of(view: ApiView) -> Any:
    rows = Webhook.objects.filter(owner=view.key.owner_id).order_by("-pk")
    subject = view.key.subject
    return rows if subject is None else rows.filter(subject=subject)


def _one(view: ApiView, uuid: UUID) -> Webhook:
    webhook: Webhook | None = _of(view).filter(uuid=uuid).first()
    if webhook is None:
        raise not_found()
    return webhook


def _shown(webhook: Webhook) -> dict[str, Any]:
    return {
        "id": webhook.uuid,
        "url": webhook.url,
        "events": webhook.events,
        "user_id": webhook.subject or None,
        "all_palaces": webhook.subject is None,
        "enabled": webhook.disabled_at is None,
        "disabled_why": webhook.disabled_why or None,
        "failing_since": webhook.failing_since,
        "former_secret_until": webhook.former_signs_until,
        "created_at": webhook.created_at,
    }


def _delivery(delivery: WebhookDelivery) -> dict[str, Any]:
    return {
        "id": delivery.message_id,
        "event": delivery.event,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "status": delivery.status,
        "said": delivery.said,
        "created_at": delivery.created_at,
        "due_at": delivery.due_at,
        "delivered_at": delivery.delivered_at,
    }
