"""mem0's API, so that its client, versions 0.1 to 2.2, works with Loci.

Its requests have `Token` in `Authorization`, ours have `Bearer`; this decides which view answers at
addresses that both use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, ClassVar

from django.contrib.auth.models import User
from django.db.models import Count, F, Max, Min, Q
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from api.mem0 import shapes
from api.mem0.shapes import Filtered, read_filters
from api.rest.access import key_in, palaces_for
from api.rest.base import number_in
from api.rest.fact_shapes import scope_in
from api.rest.facts import TAKEN, FactView
from api.rest.memory_shapes import new_turn
from api.rest.problems import Problem, not_found
from isolation import row_access
from palace.models import Fact, Palace
from palace.sdk import FactConflict, operations
from palace.sdk.operations import translate_errors
from settings_app import throttling
from settings_app.api_keys import ApiKey

SCHEME = "token"
View = Callable[..., HttpResponseBase]
# The only organisation and project.
ALONE = "loci"
AMBIGUOUS = (
    "Several users have a run of this name, and nothing was deleted. Delete one user's by "
    "delete_all(user_id=…, run_id=…)."
)
_KINDS = {"user": "user_id", "agent": "agent_id", "run": "run_id"}


class TokenKey(BaseAuthentication):
    """Our API key in `Authorization: Token`, or in `Bearer` for trying it by hand."""

    def authenticate(self, request: Request) -> tuple[User, ApiKey]:
        key = key_in(request.headers.get("Authorization", ""), (SCHEME, "bearer"))
        row_access.enter(key.row_access())
        return key.owner, key

    def authenticate_header(self, request: Request) -> str:
        return 'Token realm="Loci"'


def for_mem0(ours: View, theirs: View) -> View:
    """A view that calls the second view for mem0's client, and the first for others."""

    @wraps(ours)
    def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        scheme = request.headers.get("Authorization", "").strip().partition(" ")[0]
        chosen = theirs if scheme.lower() == SCHEME else ours
        return chosen(request, *args, **kwargs)

    return view


class Mem0View(FactView):
    """Unknown fields are ignored: versions of the client differ in their options."""

    authentication_classes = (TokenKey,)
    # mem0 documents it; our reference has only our own addresses.
    schema = None

    @property
    def fields(self) -> dict[str, Any]:
        """
        Raises:
            Problem: 400, the body is no object, or needs something that Loci does not support.
        """
        if not isinstance(self.request.data, Mapping):
            raise Problem(400, "bad_input", "The body is a JSON object.")
        fields = dict(self.request.data)
        shapes.refuse_unsupported(fields)
        return fields

    @property
    def fields_in_address(self) -> dict[str, Any]:
        with translate_errors():
            return shapes.fields_in_address(self.request.query_params)

    def filtered(self, fields: Mapping[str, Any]) -> Filtered:
        with translate_errors():
            return read_filters(fields)


class PingView(Mem0View):
    def get(self, request: Request) -> Response:
        """The client's first request: whether the key is known.

        Without an organisation and a project the client would not start.
        """
        owner = self.key.owner
        email = owner.email or owner.get_username()
        return Response({"status": "ok", "user_email": email, "org_id": ALONE, "project_id": ALONE})


class AddView(Mem0View):
    def post(self, request: Request) -> Response:
        fields = self.fields
        params = self.read(shapes.Added, fields)
        filtered = self.filtered({**fields, "filters": _scope_alone(fields.get("filters"))})
        scope = scope_in({**dict.fromkeys(_KINDS.values()), **filtered.scope}, self.key)
        with translate_errors():
            what = operations.IngestionRequest.read(
                scope,
                shapes.messages_in(params["messages"]),
                metadata=_with_app(params["metadata"], fields.get("app_id")),
                timestamp=params["timestamp"],
                name=new_turn(self.write),
                infers=params["infer"] is not False,
            )
            added = operations.add(scope.palace_made(self.key.owner_id), what)
        may_read = self.key.may("read")
        events = [event for event in added["results"] if may_read or event["event"] == "ADD"]
        return Response({"results": shapes.events_of(events)})


class ListView(Mem0View):
    """All memories of a scope: as a list, or in pages."""

    only_reads: ClassVar[bool] = True

    def cost_of(self, fields: Mapping[str, Any]) -> int:
        return throttling.cost_of(results=number_in(fields, "page_size", 100))

    def post(self, request: Request) -> Response:
        return self._listed({**self.fields, **self.fields_in_address})

    def get(self, request: Request) -> Response:
        return self._listed(self.fields_in_address)

    def _listed(self, fields: Mapping[str, Any]) -> Response:
        params = self.read(shapes.Paged, fields)
        filtered = self.filtered(fields)
        page, size = params.get("page", 1), params.get("top_k", params["page_size"])
        with translate_errors():
            scope = scope_in({**dict.fromkeys(_KINDS.values()), **filtered.scope}, self.key)
            items, count = operations.list_page(
                scope.palace(self.key.owner_id),
                scope,
                filtered.filters,
                start=(page - 1) * size,
                limit=size,
            )
        shown = list(map(shapes.item_of, items))
        if not self._in_pages and "page" not in params:
            return Response(shown)
        address = partial(_page_address, self.request, size=size)
        return Response(
            {
                "count": count,
                "next": address(page + 1) if count > page * size else None,
                "previous": address(page - 1) if page > 1 else None,
                "results": shown,
            }
        )

    @property
    def _in_pages(self) -> bool:
        return self.request.path.startswith("/v3/")


class MemoriesView(ListView):
    """/v1/memories/: add, list and delete."""

    only_reads: ClassVar[bool] = False
    post = AddView.post

    def cost_of(self, fields: Mapping[str, Any]) -> int:
        return super().cost_of(fields) if self.request.method == "GET" else 1

    def delete(self, request: Request) -> Response:
        filtered = self.filtered(self.fields_in_address)
        if filtered.conditions:
            raise Problem(
                400, "not_supported", "All memories of a scope are deleted: filter by ids alone."
            )
        self.memory.delete_all(**filtered.scope)
        return Response({"message": "Memories deleted successfully!"})


class SearchView(Mem0View):
    only_reads: ClassVar[bool] = True

    def cost_of(self, fields: Mapping[str, Any]) -> int:
        return throttling.cost_of(results=number_in(fields, "top_k", 10))

    def post(self, request: Request) -> Response:
        fields = self.fields
        params, filtered = self.read(shapes.Asked, fields), self.filtered(fields)
        found = self.memory.search(
            params["query"],
            **filtered.scope,
            filters=filtered.filters,
            limit=params.get("limit", params["top_k"]),
        )
        least = params["threshold"]
        items = [
            shapes.item_of(item)
            for item in found["results"]
            if least is None or item["score"] >= least
        ]
        in_object = request.path.startswith("/v3/") or fields.get("output_format") == "v1.1"
        return Response({"results": items} if in_object else items)


class MemoryView(Mem0View):
    def get(self, request: Request, memory_id: str) -> Response:
        item = self.memory.get(memory_id)
        if item is None:
            raise not_found()
        return Response(shapes.item_of(item))

    def put(self, request: Request, memory_id: str) -> Response:
        item = _rewritten(self, memory_id, self.fields)
        if not self.key.may("read"):
            return Response({"id": item["id"], "memory": item["memory"]})
        return Response(shapes.item_of(item))

    def delete(self, request: Request, memory_id: str) -> Response:
        self.memory.delete(memory_id)
        return Response({"message": "Memory deleted successfully!"})


class HistoryView(Mem0View):
    def get(self, request: Request, memory_id: str) -> Response:
        return Response(list(map(shapes.change_of, self.memory.history(memory_id))))


class BatchView(Mem0View):
    """Many memories by id; stops at the first that cannot be changed, and names it."""

    def put(self, request: Request) -> Response:
        given = self.read(shapes.Batch, self.fields)["memories"]
        for each in given:
            _rewritten(self, each["memory_id"], each)
        return Response({"message": f"Successfully updated {len(given)} memories"})

    def delete(self, request: Request) -> Response:
        given = self.read(shapes.Batch, self.fields)["memories"]
        for each in given:
            self.memory.delete(each["memory_id"])
        return Response({"message": f"Successfully deleted {len(given)} memories"})


class EntitiesView(Mem0View):
    """The users, agents and runs that have memories."""

    def get(self, request: Request) -> Response:
        facts = Fact.objects.filter(palace__in=palaces_for(self.key)).active()
        found = [
            {
                "id": row["name"],
                "name": row["name"],
                "type": kind,
                "total_memories": row["number"],
                "created_at": row["first"],
                "updated_at": row["last"],
            }
            for kind, column in (("user", "palace__subject"), ("agent", "agent"), ("run", "run"))
            for row in facts.exclude(**{column: ""})
            .order_by()
            .values(name=F(column))
            .annotate(number=Count("pk"), first=Min("recorded_at"), last=Max("recorded_at"))
            .order_by("name")
        ]
        return Response({"results": found, "count": len(found)})


class EntityView(Mem0View):
    def delete(self, request: Request, kind: str, name: str) -> Response:
        """Delete the memories of a user, those of an agent of all users, or one user's run.

        409 with `ambiguous_session` where several users have a run of this name; nothing is
        deleted then.
        """
        if kind not in _KINDS:
            said = f"An entity is of the kind {', '.join(_KINDS)}, not “{kind}”."
            raise Problem(400, "bad_input", said)
        if kind == "user":
            self.memory.delete_all(user_id=name)
        else:
            for palace in self._palaces_with(kind, name):
                whose = {"user_id": palace.subject} if palace.subject else {}
                self.memory.delete_all(**whose, **{_KINDS[kind]: name})
        return Response({"message": "Entity deleted successfully!"})

    def _palaces_with(self, kind: str, name: str) -> list[Palace]:
        """
        Raises:
            Problem: 409, several users have such a run.
        """
        palaces = palaces_for(self.key)
        with translate_errors():
            scope = scope_in({**dict.fromkeys(_KINDS.values()), _KINDS[kind]: name}, self.key)
        facts = scope.narrow(Fact.objects.filter(palace__in=palaces)).active()
        added = scope.added().filter(palace__in=palaces).kept()
        either = Q(pk__in=facts.values("palace")) | Q(pk__in=added.values("palace"))
        having = list(palaces.filter(either))
        if kind == "run" and len(having) > 1:
            raise Problem(409, "ambiguous_session", AMBIGUOUS)
        return having


def _rewritten(view: Mem0View, memory_id: str, fields: Mapping[str, Any]) -> Any:
    """
    Raises:
        Problem: 400, the request changes nothing, or the time; 404, there is no such memory; 409,
            the key may not read.
        FactConflict: another memory has the single value.
    """
    if fields.get("timestamp") is not None:
        raise Problem(400, "not_supported", shapes.NO_TIME)
    new = view.read(shapes.Rewritten, fields)
    if new["text"] is None and new["metadata"] is None:
        raise Problem(400, "bad_input", shapes.NOTHING_NEW)
    metadata = new["metadata"]
    if metadata is not None and (old := view.memory.get(memory_id)):
        metadata = _with_app(metadata, old["metadata"].get("app_id"))
    try:
        with translate_errors():
            palaces = palaces_for(view.key)
            return operations.rewrite(palaces, memory_id, new["text"], metadata=metadata)
    except FactConflict as error:
        # Its message names the other memory.
        raise error if view.key.may("read") else Problem(409, error.code, TAKEN) from None


def _scope_alone(filters: object) -> object:
    """The ids in the filters of an add request; its other filters concern judging, which has its
    own."""
    if not isinstance(filters, Mapping):
        return filters
    return {name: value for name, value in filters.items() if name in _KINDS.values()}


def _with_app(metadata: Mapping[str, Any] | None, app: object) -> Mapping[str, Any] | None:
    """Scopes have no app here: its name is stored and searched as metadata."""
    return metadata if app is None else {**(metadata or {}), "app_id": app}


def _page_address(request: Request, page: int, *, size: int) -> str:
    address = request.query_params.copy()
    address["page"], address["page_size"] = str(page), str(size)
    return request.build_absolute_uri(f"{request.path}?{address.urlencode()}")
