from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from config.management.commands.rotate_keys import SEALED, Rotation, rotate, rotated_one_by_one
from palace.models import Webhook
from palace.recall import RecallRequest, recall
from palace.storage.own_output import is_sealed, sealed
from palace.webhooks import add, replace_secret
from palace.webhooks.delivery import forget_old
from settings_app import second_step
from settings_app.models import MemorySettings, SecondStep
from settings_app.secrets import is_current, unseal

KEY = "sk-proj-this-is-a-secret-key"
OLD, NEW = "the key of before", "the key from now on"


@pytest.fixture
def secrets_of(settings, alice, bob):
    """Both have one of each kind, under the old key; what these are, by kind and owner."""
    settings.SECRET_KEY = OLD
    plain = {}
    for user in (alice, bob):
        chosen = MemorySettings(owner=user, provider="openai", model="gpt-5-mini")
        chosen.set_key(KEY + user.username)
        chosen.save()
        webhook, former = add(user.pk, "https://example.org/x", ["mined"])
        plain["former_sealed_secret", user.pk] = former
        plain["webhook", user.pk] = replace_secret(webhook)
        second_step.begin(user)
        plain["step", user.pk] = SecondStep.objects.get(owner=user).secret
        plain["key", user.pk] = KEY + user.username
    return plain


def opened():
    """All of them, as they can be read now."""
    found = {}
    for model, field in SEALED:
        kind = {MemorySettings: "key", SecondStep: "step"}.get(model, field)
        kind = "webhook" if (model, field) == (Webhook, "sealed_secret") else kind
        for row in model.objects.all():
            found[kind, row.owner_id] = unseal(getattr(row, field))
    return found


def all_current():
    return all(
        is_current(getattr(row, field)) for model, field in SEALED for row in model.objects.all()
    )


def use_new_key(settings):
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]


@pytest.mark.django_db
def test_every_sealed_column_is_known():
    """One that is forgotten here is lost when the old key goes."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        columns = {
            (table, column.name)
            for table in tables
            for column in connection.introspection.get_table_description(cursor, table)
            if "sealed" in column.name
        }
    assert columns == {(model._meta.db_table, field) for model, field in SEALED}


def test_what_an_old_key_has_encrypted_can_be_read_and_is_encrypted_again(secrets_of, settings):
    use_new_key(settings)
    assert opened() == secrets_of
    assert not all_current()
    assert rotate() == Rotation(rotated=8)
    assert rotate() == Rotation(current=8)
    settings.SECRET_KEY_FALLBACKS = []
    assert opened() == secrets_of


@pytest.mark.parametrize("after", [1, 3, 7])
def test_stopped_anywhere_nothing_is_lost_and_the_next_run_does_the_rest(
    secrets_of, settings, after
):
    use_new_key(settings)
    run = rotated_one_by_one(Rotation())
    for _ in range(after):
        next(run)
    run.close()
    assert opened() == secrets_of
    assert rotate() == Rotation(current=after, rotated=8 - after)
    assert all_current()


def test_a_key_that_its_owner_saves_meanwhile_is_not_overwritten(secrets_of, settings, alice):
    use_new_key(settings)
    run = rotated_one_by_one(Rotation())
    next(run)
    chosen = MemorySettings.objects.order_by("pk").last()
    chosen.set_key("sk-just-entered")
    chosen.save()
    for _ in run:
        pass
    chosen.refresh_from_db()
    assert unseal(chosen.sealed_key) == "sk-just-entered"


def test_the_command_says_what_it_has_done_and_what_nothing_opens(secrets_of, settings, capsys):
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCI_SECRET_KEY", NEW)
        with pytest.raises(CommandError, match="8 cannot be read"):
            call_command("rotate_keys")
        with pytest.raises(CommandError, match="put the former one into LOCI_OLD_SECRET_KEYS"):
            call_command("rotate_keys", "--new")
        settings.SECRET_KEY_FALLBACKS = [OLD]
        call_command("rotate_keys")
    assert "Encrypted again: 8. Already current: 0." in capsys.readouterr().out


def test_a_session_and_an_own_block_outlive_the_key(settings, client, alice, lived_in):
    settings.SECRET_KEY = OLD
    client.force_login(alice)
    block = recall(lived_in, RecallRequest("What is wrong with the battery?")).context
    assert is_sealed(block)
    use_new_key(settings)
    assert client.get("/settings/").status_code == 200
    assert is_sealed(block)
    assert is_sealed(sealed(block))
    settings.SECRET_KEY_FALLBACKS = []
    assert not is_sealed(block)
    # It was used meanwhile, and is signed by the new key.
    assert client.get("/settings/").status_code == 200


@pytest.mark.exhaustive
def test_where_loci_keeps_the_key_it_is_made_again(house):
    path = house.home / "secret_key"
    house.manage("rotate_keys", "--new")
    first = path.read_text()
    assert len(first.split()) == 1
    assert path.stat().st_mode & 0o777 == 0o600
    said = house.manage("rotate_keys", "--new").stdout
    assert "Nothing is encrypted under an old key any more." in said
    assert path.read_text() != first
    # As a run that was killed has left it.
    path.write_text(f"{path.read_text()}\n{first}")
    house.manage("rotate_keys")
    assert len(path.read_text().split()) == 1


def test_the_former_secret_of_a_webhook_is_forgotten(secrets_of):
    forget_old()
    assert not Webhook.objects.filter(former_sealed_secret="").exists()
    Webhook.objects.update(former_until=timezone.now() - timedelta(seconds=1))
    forget_old()
    assert set(Webhook.objects.values_list("former_sealed_secret", "former_until")) == {("", None)}
