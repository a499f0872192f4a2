"""Whom to tell, and what is to be told, which the database itself writes down."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models

from palace.models.migration_steps import goes_with_its_palace

# Functions look where they were made: a restore, for one, has no search path.
TELL = """
CREATE FUNCTION palace_tell(
    told_palace bigint, told_event text, told_about uuid, told_data jsonb
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO palace_webhookdelivery
        (uuid, webhook_id, palace_id, event, about, data, created_at, due_at, attempts, said)
    SELECT gen_random_uuid(), w.id, p.id, told_event, told_about, told_data, now(), now(), 0, ''
    FROM palace_palace p JOIN palace_webhook w ON w.owner_id = p.owner_id
    WHERE p.id = told_palace AND w.disabled_at IS NULL AND told_event = ANY (w.events)
        AND (w.subject IS NULL OR w.subject = p.subject)
    -- What grows while it waits is told as it is by then.
    ON CONFLICT (webhook_id, about) WHERE taken_at IS NULL DO UPDATE SET data = EXCLUDED.data;
END
$$
"""

# Where nobody wants to be told, that is all it costs: a look at an empty table.
WATCHED = """
CREATE FUNCTION {table}_told() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM palace_webhook) THEN
        PERFORM palace_tell(NEW.palace_id, '{event}', NEW.uuid, {data});
    END IF;
    RETURN NULL;
END
$$
"""
WATCH = """
CREATE TRIGGER {name} AFTER {when} ON {table}
    FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {table}_told()
"""

# Ids, figures and who did it; no words, which may have to be forgotten.
MINED = "jsonb_build_object('room', NEW.detail->'room', 'made', NEW.detail->'made')"
CHANGED = """jsonb_build_object('memory', NEW.memory, 'event', NEW.event, 'by', NEW."by",
            'agent_id', nullif(NEW.agent, ''), 'run_id', nullif(NEW.run, ''))"""
RECALLED = """jsonb_build_object('hits', jsonb_array_length(NEW.hits),
            'facts', jsonb_array_length(NEW.facts), 'recipe', NEW.recipe,
            'duration_ms', round(NEW.duration_ms::numeric, 1))"""


def told(table, event, data, **triggers):
    function = WATCHED.format(table=table, event=event, data=data)
    yield migrations.RunSQL(function, f"DROP FUNCTION {table}_told")
    for when, condition in triggers.items():
        name = f"{table}_{when}_told"
        watch = WATCH.format(name=name, table=table, when=when.upper(), condition=condition)
        yield migrations.RunSQL(watch, f"DROP TRIGGER {name} ON {table}")


class Migration(migrations.Migration):

    dependencies = [
        ('palace', '0019_told_through_the_api'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('url', models.CharField(max_length=1000)),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('mined', 'Mined: messages were filed, and can be found'), ('fact.changed', 'A fact was added, changed or dropped'), ('recalled', 'Recalled: somebody was given memories')], max_length=20), size=None)),
                ('subject', models.CharField(blank=True, default=None, max_length=200, null=True)),
                ('sealed_secret', models.TextField(help_text='Encrypted; see settings_app.secrets.')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('failing_since', models.DateTimeField(help_text='Nothing has arrived since.', null=True)),
                ('disabled_at', models.DateTimeField(help_text='Nothing is sent, or kept to be sent.', null=True)),
                ('disabled_why', models.CharField(blank=True, max_length=200)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('event', models.CharField(max_length=20)),
                ('about', models.UUIDField(default=uuid.uuid4, help_text='Of the activity, event or trace.')),
                ('data', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('due_at', models.DateTimeField(default=django.utils.timezone.now, help_text='Null: it arrived, or was given up.', null=True)),
                ('taken_at', models.DateTimeField(help_text='When it was last taken up to be sent.', null=True)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('delivered_at', models.DateTimeField(null=True)),
                ('status', models.PositiveSmallIntegerField(help_text='As HTTP has it; the last.', null=True)),
                ('said', models.CharField(blank=True, help_text='What came of the last attempt, for a person.', max_length=300)),
                ('palace', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ('webhook', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='palace.webhook')),
            ],
            options={
                'verbose_name_plural': 'webhook deliveries',
                'ordering': ['-pk'],
                'indexes': [models.Index(fields=['webhook', '-id'], name='webhook_delivery_newest'), models.Index(condition=models.Q(('due_at__isnull', False)), fields=['webhook', 'due_at', 'id'], name='webhook_delivery_due'), models.Index(fields=['created_at'], name='webhook_delivery_age')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('taken_at', None)), fields=('webhook', 'about'), name='webhook_delivery_waits_once')],
            },
        ),
        goes_with_its_palace('palace_webhookdelivery'),
        migrations.RunSQL(TELL, 'DROP FUNCTION palace_tell'),
        # One activity a run grows with each batch; later its sentence may change, not its figures.
        *told(
            'palace_activity', 'mined', MINED,
            insert="NEW.kind = 'memory_mined'",
            update="NEW.kind = 'memory_mined' AND OLD.detail IS DISTINCT FROM NEW.detail",
        ),
        *told('palace_factevent', 'fact.changed', CHANGED, insert='true'),
        *told('palace_recollectiontrace', 'recalled', RECALLED, insert='true'),
    ]
