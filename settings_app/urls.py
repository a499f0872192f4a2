"""The addresses of accounts."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, path

from settings_app import views

urlpatterns: list[URLPattern] = [
    path("sign-up/", views.sign_up, name="sign_up"),
    path("sign-in/", views.SignIn.as_view(), name="sign_in"),
    path("sign-in/once/<str:token>/", views.sign_in_once, name="sign_in_once"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("settings/account/", views.account, name="account"),
]
