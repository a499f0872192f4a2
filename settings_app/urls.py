"""The addresses of accounts and settings."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, path

from settings_app import account_views, memory_views, security_views
from settings_app.accounts import ROUTE

urlpatterns: list[URLPattern] = [
    path("sign-up/", account_views.sign_up, name="sign_up"),
    path("sign-in/", account_views.SignIn.as_view(), name="sign_in"),
    path(f"{ROUTE}<str:token>/", account_views.sign_in_once, name="sign_in_once"),
    path("sign-in/code/", security_views.sign_in_code, name="sign_in_code"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("settings/", memory_views.memory_settings, name="settings"),
    path("settings/model/", memory_views.model_settings, name="model_settings"),
    path("settings/try/", memory_views.try_model, name="try_model"),
    path("settings/remove-key/", memory_views.remove_key, name="remove_key"),
    path("settings/costs/", memory_views.costs, name="costs"),
    path("settings/keys/", security_views.api_keys, name="api_keys"),
    path("settings/keys/<uuid:uuid>/revoke/", security_views.revoke_key, name="revoke_key"),
    path("settings/account/", account_views.account, name="account"),
    path("settings/account/second-step/", security_views.second_step_page, name="second_step"),
]
