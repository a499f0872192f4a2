"""What the versions 0.1.118, 1.0.11 and 2.2.1 of mem0's client send, and read of the answers."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from palace.models import Drawer, Fact
from tests.api.mem0.conftest import mem0_of

SAID = [{"role": "user", "content": "I am allergic to walnuts."}]
OLD = {"version": "v2", "output_format": "v1.1", "async_mode": True, "org_id": "o"}
ADA = {"user_id": "ada"}
ADDING = {
    "0.1 and 1.0": ("/v1/memories/", {**ADA, **OLD}),
    "2.2": ("/v3/memories/add/", {"filters": ADA}),
    "2.2, ids outside": ("/v3/memories/add/", ADA),
}
LISTING = {
    "1.0": ("post", "/v2/memories/", {"filters": {"AND": [ADA]}}),
    "2.2": ("post", "/v3/memories/", {"filters": ADA}),
    "0.1": ("get", "/v1/memories/", ADA),
}
SEARCHING = {
    "0.1": ("/v1/memories/search/", {**ADA, "top_k": 3}),
    "1.0": ("/v2/memories/search/", {"filters": {"OR": [{"type": "fact"}], **ADA}}),
    "2.2": ("/v3/memories/search/", {"filters": ADA, "top_k": 3, "rerank": True}),
}


def add(mem0, text="I am allergic to walnuts.", **more):
    said = [{"role": "user", "content": text}]
    answer = mem0.post("/v3/memories/add/", {"messages": said, **ADA, **more}, format="json")
    assert answer.status_code == 200, answer.content
    return answer.data["results"]


def results(answer):
    assert answer.status_code == 200, answer.content
    return answer.data["results"] if isinstance(answer.data, dict) else answer.data


def test_its_first_request_says_whose_key_it_is(mem0):
    answer = mem0.get("/v1/ping/")
    assert (answer.status_code, answer.data["user_email"]) == (200, "owner@example.org")
    assert answer.data["org_id"]
    assert answer.data["project_id"]
    mem0.credentials(HTTP_AUTHORIZATION="Token loci_wrong")
    refused = mem0.get("/v1/ping/")
    assert refused.status_code == 401
    assert "key" in refused.data["detail"]


@pytest.mark.parametrize("version", ADDING)
def test_messages_are_added(mem0, version):
    address, fields = ADDING[version]
    answer = mem0.post(address, {"messages": SAID, **fields}, format="json")
    [event] = results(answer)
    assert (event["event"], event["memory"]) == ("ADD", "User is allergic to walnuts")
    assert Drawer.objects.get(palace__subject="ada").text == SAID[0]["content"]
    assert results(mem0.post(address, {"messages": SAID, **fields}, format="json")) == []


@pytest.mark.parametrize("version", LISTING)
def test_memories_are_listed(mem0, version):
    add(mem0)
    method, address, fields = LISTING[version]
    [item] = results(getattr(mem0, method)(address, fields, format="json"))
    assert (item["memory"], item["user_id"]) == ("User is allergic to walnuts", "ada")
    assert item["categories"] == ["health"]


@pytest.mark.parametrize("version", SEARCHING)
def test_memories_are_searched(mem0, version):
    add(mem0)
    address, fields = SEARCHING[version]
    [item] = results(mem0.post(address, {"query": "nuts", **fields}, format="json"))
    assert 0 < item["score"] <= 1
    nothing = mem0.post(address, {"query": "nuts", **fields, "threshold": 0.999}, format="json")
    assert results(nothing) == []


def test_pages_follow_one_another(mem0):
    for food in ("walnuts", "peanuts", "shrimp"):
        add(mem0, f"I am allergic to {food}.")
    answer = mem0.post("/v3/memories/?page=1&page_size=2", {"filters": ADA}, format="json")
    assert (len(results(answer)), answer.data["previous"]) == (2, None)
    after = mem0.post(answer.data["next"], {"filters": ADA}, format="json")
    assert (len(results(after)), after.data["next"], after.data["count"]) == (1, None, 3)


def test_the_address_of_the_next_page_names_whose_memories(mem0):
    for food in ("walnuts", "peanuts"):
        add(mem0, f"I am allergic to {food}.")
    answer = mem0.get("/v1/memories/?user_id=ada&page=1&page_size=1")
    after = mem0.get(answer.data["next"])
    assert len(results(after)) == 1
    assert len(results(mem0.get(after.data["previous"]))) == 1


def test_a_list_in_an_address_counts_whole(mem0):
    # The client of 0.1 repeats the name for each element, and writes a dictionary as Python does.
    add(mem0)
    listed = {**ADA, "categories": ["health", "travel"]}
    for categories in (["health", "travel"], ["travel", "health"], ["health"]):
        assert len(results(mem0.get("/v1/memories/", {**listed, "categories": categories}))) == 1
    assert results(mem0.get("/v1/memories/", {**listed, "categories": ["travel"]})) == []
    assert len(results(mem0.get("/v1/memories/", {"filters": str(ADA)}))) == 1


def test_filters_in_an_address_that_are_nested_too_deep_are_refused(mem0):
    refused = mem0.delete(f"/v1/memories/?user_id=ada&filters={'[' * 3000}")
    assert (refused.status_code, refused.data["code"]) == (400, "bad_filter")


def test_a_memory_is_read_changed_and_deleted(mem0):
    [event] = add(mem0)
    address = f"/v1/memories/{event['id']}/"
    assert mem0.get(address).data["memory"] == event["memory"]
    changed = mem0.put(address, {"text": "User is allergic to peanuts"}, format="json")
    assert changed.data["memory"] == "User is allergic to peanuts"
    history = mem0.get(f"{address}history/").data
    assert [(line["event"], line["new_memory"]) for line in history] == [
        ("ADD", event["memory"]),
        ("UPDATE", "User is allergic to peanuts"),
    ]
    assert mem0.delete(address).data == {"message": "Memory deleted successfully!"}
    assert mem0.get(address).status_code == 404


def test_many_are_changed_and_deleted_at_once(mem0):
    ids = [add(mem0, f"I am allergic to {food}.")[0]["id"] for food in ("walnuts", "shrimp")]
    texts = ["User is allergic to hazelnuts", "User is allergic to prawns"]
    batch = [{"memory_id": key, "text": text} for key, text in zip(ids, texts, strict=True)]
    answer = mem0.put("/v1/batch/", {"memories": batch}, format="json")
    assert answer.data == {"message": "Successfully updated 2 memories"}
    assert {fact.text for fact in Fact.objects.active()} == set(texts)
    gone = [{"memory_id": key} for key in ids]
    assert mem0.delete("/v1/batch/", {"memories": gone}, format="json").status_code == 200
    assert not Fact.objects.active().exists()


@pytest.mark.parametrize(
    "address",
    ["/v1/memories/?user_id=ada", "/v1/memories/?filters=%7B%27user_id%27%3A+%27ada%27%7D"],
)
def test_all_of_a_user_are_deleted(mem0, address):
    add(mem0)
    add(mem0, "I live in Porto.", user_id="bea")
    assert "deleted" in mem0.delete(address).data["message"]
    assert {fact.palace.subject for fact in Fact.objects.active()} == {"bea"}


def test_users_are_listed_and_deleted(mem0):
    add(mem0, agent_id="cook")
    add(mem0, "I live in Porto.", user_id="bea")
    found = results(mem0.get("/v1/entities/"))
    named = [(one["type"], one["name"], one["total_memories"]) for one in found]
    assert named == [("user", "ada", 1), ("user", "bea", 1), ("agent", "cook", 1)]
    assert mem0.delete("/v2/entities/agent/cook/").status_code == 200
    assert mem0.delete("/v2/entities/user/bea/").status_code == 200
    assert results(mem0.get("/v1/entities/")) == []


def test_a_run_that_several_users_have_is_deleted_of_none(mem0):
    add(mem0, run_id="monday")
    add(mem0, "I live in Porto.", user_id="bea", run_id="monday")
    add(mem0, "I live in Lima.", user_id="bea", run_id="tuesday")
    refused = mem0.delete("/v2/entities/run/monday/")
    assert (refused.status_code, refused.data["code"]) == (409, "ambiguous_session")
    assert "delete_all" in refused.data["detail"]
    assert Fact.objects.active().count() == 3
    assert mem0.delete("/v1/memories/?user_id=bea&run_id=monday").status_code == 200
    # Now it is plain whose is meant.
    assert mem0.delete("/v2/entities/run/monday/").status_code == 200
    assert [fact.text for fact in Fact.objects.active()] == ["User lives in Lima"]
    assert mem0.delete("/v2/entities/run/monday/").status_code == 200


def test_messages_alone_make_a_run_ambiguous_too(mem0):
    add(mem0, run_id="monday")
    add(mem0, "What a day!", user_id="bea", run_id="monday")
    assert mem0.delete("/v2/entities/run/monday/").status_code == 409
    assert Drawer.objects.kept().count() == 2


def test_parts_of_text_are_joined(mem0):
    parts = [
        {"type": "text", "text": "I live in Porto."},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "text", "text": "It is lovely."},
    ]
    said = {"messages": [{"role": "user", "content": parts}], **ADA}
    assert mem0.post("/v3/memories/add/", said, format="json").status_code == 200
    assert Drawer.objects.get().text == "I live in Porto.\n\nIt is lovely."


def test_an_app_is_kept_and_found_as_metadata(mem0):
    add(mem0, app_id="kitchen")
    for app, number in (("kitchen", 1), ("garden", 0)):
        asked = {"filters": {**ADA, "app_id": app}}
        assert len(results(mem0.post("/v3/memories/", asked, format="json"))) == number


@pytest.mark.parametrize(
    "filters",
    [
        {"metadata": {"tag": "work"}},
        {"AND": [{"categories": {"in": ["health"]}}, {"created_at": {"gte": "2020-01-01"}}]},
        {"OR": [{"type": "opinion"}, {"categories": {"contains": "health"}}]},
        {"NOT": [{"tag": "home"}]},
        {"keywords": {"icontains": "WALNUT"}},
        {"agent_id": "*", "tag": "*"},
    ],
)
def test_filters_are_those_of_mem0(mem0, filters):
    add(mem0, metadata={"tag": "work"})
    asked = {"filters": {"AND": [ADA, filters]}}
    assert len(results(mem0.post("/v3/memories/", asked, format="json"))) == 1


@pytest.mark.parametrize(
    ("address", "fields"),
    [
        ("/v3/memories/", {"filters": {"OR": [ADA, {"user_id": "bea"}]}}),
        ("/v3/memories/", {"filters": {"user_id": "*"}}),
        ("/v3/memories/", {"filters": {"user_id": {"in": ["ada", "bea"]}}}),
        ("/v3/memories/", {"filters": {"AND": [ADA, {"user_id": "bea"}]}}),
        ("/v3/memories/", {"filters": "ada"}),
        ("/v3/memories/", {"filters": {**ADA, "OR": []}}),
        ("/v3/memories/", {"filters": {**ADA, "NOT": {}}}),
        ("/v3/memories/", {}),
        ("/v3/memories/", {"filters": ADA, "page": 0}),
        ("/v3/memories/search/", {"filters": ADA}),
        ("/v3/memories/search/", {"filters": ADA, "query": " "}),
        ("/v3/memories/add/", {"messages": [{"role": "user", "content": []}], **ADA}),
        ("/v3/memories/add/", {"messages": SAID}),
        ("/v3/memories/add/", {"messages": SAID, **ADA, "infer": "perhaps"}),
        (
            "/v3/memories/add/",
            {"messages": [{"role": "user", "content": "a" * 10_001}], **ADA, "infer": False},
        ),
        ("/v3/memories/", {"filters": ADA, "page": 10**9}),
        ("/v3/memories/add/", {"messages": SAID, **ADA, "expiration_date": "2030-01-01"}),
        ("/v3/memories/add/", [1]),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(mem0, address, fields):
    answer = mem0.post(address, fields, format="json")
    assert answer.status_code == 400, answer.content
    assert answer.data["detail"]
    assert not Fact.objects.exists()


def test_the_count_is_of_all_pages(mem0):
    for food in ("walnuts", "peanuts", "shrimp", "milk", "eggs"):
        add(mem0, f"I am allergic to {food}.", metadata={"tag": food[0]})
    first = mem0.post("/v3/memories/?page=1&page_size=2", {"filters": ADA}, format="json").data
    assert (first["count"], len(first["results"])) == (5, 2)
    beyond = mem0.post("/v3/memories/?page=9&page_size=2", {"filters": ADA}, format="json").data
    assert (beyond["count"], beyond["results"], beyond["next"]) == (5, [], None)
    some = {"filters": {**ADA, "metadata": {"tag": "m"}}}
    assert mem0.post("/v3/memories/", some, format="json").data["count"] == 1


def test_metadata_is_replaced_and_found(mem0):
    [event] = add(mem0, metadata={"tag": "work"}, app_id="kitchen")
    address = f"/v1/memories/{event['id']}/"
    changed = mem0.put(address, {"metadata": {"tag": "home"}}, format="json")
    assert (changed.status_code, changed.data["memory"]) == (200, event["memory"])
    assert mem0.get(address).data["metadata"] == {"tag": "home", "app_id": "kitchen"}
    for tag, number in (("home", 1), ("work", 0)):
        asked = {"filters": {**ADA, "metadata": {"tag": tag}}}
        assert len(results(mem0.post("/v3/memories/", asked, format="json"))) == number
        found = mem0.post("/v3/memories/search/", {"query": "nuts", **asked}, format="json")
        assert len(results(found)) == number
    both = {"text": "User is allergic to peanuts", "metadata": {}}
    assert mem0.put(address, both, format="json").data["metadata"] == {"app_id": "kitchen"}
    history = mem0.get(f"{address}history/").data
    assert [line["new_memory"] for line in history][-2:] == [event["memory"], both["text"]]
    batch = {"memories": [{"memory_id": event["id"], "metadata": {"tag": "late"}}]}
    assert mem0.put("/v1/batch/", batch, format="json").status_code == 200
    assert mem0.get(address).data["metadata"]["tag"] == "late"
    assert mem0.get(address).data["memory"] == both["text"]


def test_without_inference_each_message_is_a_memory(mem0):
    said = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I live in Porto.  "},
        {"role": "assistant", "content": [{"type": "text", "text": "How nice!"}]},
    ]
    sent = {"messages": said, **ADA, "infer": False, "metadata": {"tag": "raw"}}
    events = results(mem0.post("/v3/memories/add/", sent, format="json"))
    assert [(event["event"], event["memory"]) for event in events] == [
        ("ADD", "I live in Porto.  "),
        ("ADD", "How nice!"),
    ]
    assert events[0]["metadata"] == {"tag": "raw"}
    # Nothing is extracted later, and what is said later does not end it.
    assert not Drawer.objects.filter(facts_read_at=None).exists()
    add(mem0, "I live in Lisbon now.")
    texts = {fact.text for fact in Fact.objects.active()}
    assert texts == {"I live in Porto.  ", "How nice!", "User lives in Lisbon"}
    found = mem0.post("/v3/memories/search/", {"query": "Porto", "filters": ADA}, format="json")
    assert results(found)[0]["memory"] == "I live in Porto.  "
    mem0.delete(f"/v1/memories/{events[0]['id']}/")
    assert Drawer.objects.get(text="I live in Porto.  ").trashed_at is not None


def test_the_time_of_a_memory_cannot_be_changed(mem0):
    [event] = add(mem0)
    address = f"/v1/memories/{event['id']}/"
    for change in (
        {"timestamp": 1},
        {},
        {"text": None},
        {"text": 5},
        {"metadata": [1]},
        {"metadata": {"a": "\0"}},
    ):
        assert mem0.put(address, change, format="json").status_code == 400
    assert mem0.delete('/v1/memories/?user_id=ada&filters={"tag": 1}').status_code == 400
    assert Fact.objects.active().count() == 1


def test_strangers_find_nothing(mem0):
    [event] = add(mem0)
    stranger = mem0_of(User.objects.create_user("stranger"))
    address = f"/v1/memories/{event['id']}/"
    batch = {"memories": [{"memory_id": event["id"], "text": "Taken over"}]}
    assert stranger.get(address).status_code == 404
    assert stranger.put(address, {"text": "Taken over"}, format="json").status_code == 404
    assert stranger.put(address, {"metadata": {"a": 1}}, format="json").status_code == 404
    assert stranger.delete(address).status_code == 404
    assert stranger.put("/v1/batch/", batch, format="json").status_code == 404
    assert stranger.delete("/v1/batch/", batch, format="json").status_code == 404
    assert stranger.get(f"{address}history/").data == []
    asked = {"query": "nuts", "filters": ADA}
    for version in ("v2", "v3"):
        assert results(stranger.post(f"/{version}/memories/", asked, format="json")) == []
        found = stranger.post(f"/{version}/memories/search/", asked, format="json")
        assert results(found) == []
    assert results(stranger.get("/v1/entities/")) == []
    stranger.delete("/v1/memories/?user_id=ada")
    stranger.delete("/v2/entities/user/ada/")
    assert Fact.objects.active().get().text == event["memory"]


def test_a_key_for_one_palace_opens_no_other(owner, mem0):
    add(mem0)
    bound = mem0_of(owner, subject="bea")
    answer = bound.post("/v3/memories/", {"filters": ADA}, format="json")
    assert answer.status_code == 403
    assert results(bound.get("/v1/entities/")) == []


def test_a_key_that_only_writes_does_not_read_what_was_known(owner, mem0):
    [event] = add(mem0, metadata={"tag": "secret"})
    add(mem0, "My name is Ada.")
    writing = mem0_of(owner, scopes=("write",))
    address = f"/v1/memories/{event['id']}/"
    changed = writing.put(address, {"text": "User is allergic to peanuts"}, format="json")
    assert changed.data == {"id": event["id"], "memory": "User is allergic to peanuts"}
    taken = writing.put(address, {"text": "User's name is Bob"}, format="json")
    assert "Ada" not in taken.content.decode()
    assert writing.get(address).status_code == 403
