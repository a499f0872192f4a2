"""Every address there is: none of them shows one person's palace to another."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.urls import URLPattern, get_resolver, reverse

# What shows nobody's memories. A new address belongs here, or gets its test below.
WITHOUT_MEMORIES = {"home", "sign_in", "sign_in_once", "sign_out", "sign_up", "health"}
# What shows the memories of whoever is signed in, and has nobody else's in its address.
ONES_OWN = {"account", "memory"}
# What names something in a palace: its address, and the fixture it is made from.
SOMEBODYS = {
    "wing_detail": lambda drawer: drawer.room.wing.get_absolute_url(),
    "room_detail": lambda drawer: drawer.room.get_absolute_url(),
    "closet_detail": lambda drawer: drawer.closet.get_absolute_url(),
    "drawer_detail": lambda drawer: drawer.get_absolute_url(),
    "pointer": lambda drawer: f"{reverse('pointer')}?p={drawer.pointer}",
    "pointer_path": lambda drawer: reverse("pointer_path", args=["W-9042/R-9011/D-9007"]),
}
# What only does something, when posted to: its address, and what is sent along.
ACTIONS = {}


def page_names(patterns=None, at=""):
    """Names of every address of ours that is not a program's door (those have their own tests)."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(pattern, URLPattern):
            yield pattern.name or at + str(pattern.pattern)
        elif pattern.namespace != "admin":  # tests/settings_app/test_admin.py walks through it.
            yield from page_names(pattern.url_patterns, at + str(pattern.pattern))


def test_every_address_is_tested_for_isolation():
    assert set(page_names()) == WITHOUT_MEMORIES | ONES_OWN | set(SOMEBODYS) | set(ACTIONS)


@pytest.mark.parametrize("name", SOMEBODYS)
def test_a_strangers_address_is_not_found(bobs, drawer, name):
    response = bobs.get(SOMEBODYS[name](drawer))
    assert response.status_code == 404
    assert drawer.text not in response.text
    assert drawer.room.title not in response.text


@pytest.mark.parametrize("name", SOMEBODYS)
def test_a_strangers_part_is_not_found(bobs, drawer, name):
    response = bobs.get(SOMEBODYS[name](drawer), headers={"HX-Request": "true"})
    assert response.status_code == 404
    assert drawer.room.title not in response.text


@pytest.mark.parametrize("name", SOMEBODYS)
def test_the_owner_gets_there(alices, drawer, name):
    assert alices.get(SOMEBODYS[name](drawer), follow=True).status_code == 200


@pytest.mark.parametrize("name", ONES_OWN)
def test_ones_own_page_shows_nothing_of_others(bobs, drawer, name):
    response = bobs.get(reverse(name))
    assert response.status_code == 200
    assert drawer.room.wing.name not in response.text


@pytest.mark.parametrize("name", SOMEBODYS)
def test_without_sign_in_one_is_asked_to(client, drawer, name):
    response = client.get(SOMEBODYS[name](drawer))
    assert response.status_code == 302
    assert response.url.startswith(f"{reverse('sign_in')}?next=")


@pytest.mark.parametrize("name", SOMEBODYS)
def test_without_sign_in_a_part_reloads_its_page(client, drawer, name):
    response = client.get(SOMEBODYS[name](drawer), headers={"HX-Request": "true"})
    assert response.headers["HX-Refresh"] == "true"
    assert drawer.text not in response.text


@pytest.mark.parametrize("name", SOMEBODYS)
def test_no_page_is_changed_by_a_form(alices, drawer, name):
    assert alices.post(SOMEBODYS[name](drawer)).status_code == 405


@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_a_stranger_can_do_nothing(bobs, drawer, name, headers):
    address, sent = ACTIONS[name](drawer)
    before = everything_of(drawer.palace)
    response = bobs.post(address, sent, headers=headers)
    assert response.status_code == 404
    assert drawer.text not in response.text
    assert everything_of(drawer.palace) == before


@pytest.mark.parametrize("name", ACTIONS)
def test_without_sign_in_nothing_is_done(client, drawer, name):
    address, sent = ACTIONS[name](drawer)
    before = everything_of(drawer.palace)
    assert client.post(address, sent).url.startswith(reverse("sign_in"))
    assert client.post(address, sent, headers={"HX-Request": "true"}).status_code == 403
    assert everything_of(drawer.palace) == before


@pytest.mark.parametrize("name", ACTIONS)
def test_what_does_something_is_not_done_by_a_link(alices, drawer, name):
    address, _sent = ACTIONS[name](drawer)
    assert alices.get(address).status_code == 405


def everything_of(palace):
    """Every row of a palace, in every table that has such."""
    tables = [
        model for model in apps.get_models() if any(f.name == "palace" for f in model._meta.fields)
    ]
    return {model: list(model.objects.filter(palace=palace).values()) for model in tables}


def test_a_superuser_sees_no_more_than_others(client, admin_user, drawer):
    client.force_login(admin_user)
    assert client.get(drawer.get_absolute_url()).status_code == 404
