"""The page of all components: what it shows has no fault, by day and by night, on any screen."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.browser.page_checks import faults_in_light_and_dark, open_everything

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wrong_with_any_component(signed_in, palace, width):
    page = signed_in(at=reverse("components"), viewport={"width": width, "height": 844})
    assert faults_in_light_and_dark(page) == []
    page.get_by_role("button", name="What is a drawer?").click()
    open_everything(page)
    assert faults_in_light_and_dark(page) == []
