"""The tables of accounts and settings as they were after eight migrations, made at once where there
are none.
"""

from decimal import Decimal
from importlib import import_module

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
import settings_app.models
import uuid
from django.conf import settings
from django.db import migrations, models

REPLACED = (
    "0001_initial",
    "0002_sessions_and_names",
    "0003_recipe",
    "0004_dreams",
    "0005_api_keys",
    "0006_consent",
    "0007_keys_for_open_webui",
    "0008_second_steps",
)
# Users may be there before these tables are.
_, *UNIQUE_NAMES = import_module("settings_app.migrations.0002_sessions_and_names").Migration.operations


class Migration(migrations.Migration):
    initial = True
    replaces = [("settings_app", name) for name in REPLACED]
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='MemorySettings',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('enabled', models.BooleanField(default=True, help_text='Recall before each reply and mine after it.')),
                ('top_k', models.PositiveSmallIntegerField(default=5, help_text='How many drawers a reply is given.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(50)])),
                ('use_rerank', models.BooleanField(default=False, help_text='Have a model put the best twenty in order.')),
                ('rerank_model', models.CharField(blank=True, help_text="Empty: the provider's small one.", max_length=200)),
                ('auto_mine', models.BooleanField(default=True, help_text='Mine each conversation by itself; else by hand.')),
                ('provider', models.CharField(blank=True, default='', help_text="A preset's name, a base URL, `none`, or empty for this server's.", max_length=500)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('sealed_key', models.TextField(blank=True, help_text='Encrypted; see settings_app.secrets.')),
                ('time_zone', models.CharField(blank=True, help_text='An IANA name; empty means UTC.', max_length=60)),
                ('changed_at', models.DateTimeField(auto_now=True)),
                ('recipe', models.CharField(default='default', help_text='How it looks: a recipe of recall.', max_length=50)),
                ('dream_limit_tokens', models.PositiveIntegerField(default=150000, help_text='What one dream may use, whatever the price.')),
                ('dream_limit_usd', models.DecimalField(decimal_places=4, default=Decimal('0.25'), help_text="What one dream may cost, where the model's price is known.", max_digits=8, validators=[django.core.validators.MinValueValidator(0)])),
                ('dream_preferences', models.BooleanField(default=True, help_text='Let a dream with the model infer preferences from what was said.')),
                ('dream_trusted', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=14), blank=True, default=list, help_text='Kinds of proposals that are applied without being asked for.', size=None)),
                ('dreams', models.CharField(choices=[('off', 'Do not dream'), ('local', 'By local rules, which cost nothing'), ('model', 'With the model, up to the limit')], default='local', max_length=5)),
                ('awaits_consent', models.BooleanField(default=False, help_text='The provider is not sent anything until the owner agrees.')),
                ('price_input', models.DecimalField(blank=True, decimal_places=4, help_text='What a million tokens that the model reads cost, in US dollars.', max_digits=10, null=True, validators=[django.core.validators.MinValueValidator(0)])),
                ('price_output', models.DecimalField(blank=True, decimal_places=4, help_text='What a million tokens that it writes cost, in US dollars.', max_digits=10, null=True, validators=[django.core.validators.MinValueValidator(0)])),
                ('uses', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('replies', 'Replies'), ('filing', 'Filing and summaries'), ('facts', 'Facts'), ('rerank', 'Ordering what was found'), ('dreams', 'Dreams')], max_length=10), blank=True, default=settings_app.models.every_use, help_text='What the model may be asked for, whoever chose it.', size=None)),
                ('owner', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='memory_settings', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'memory settings',
            },
        ),
        migrations.CreateModel(
            name='Session',
            fields=[
                ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                ('session_data', models.TextField(verbose_name='session data')),
                ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                ('seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), default=django.utils.timezone.now, help_text='When it was last used, to some minutes.')),
                ('owner', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'session',
                'verbose_name_plural': 'sessions',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('name', models.CharField(max_length=100)),
                ('start', models.CharField(max_length=11)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('read', 'Read: recall, search, list'), ('write', 'Write: add, change, delete memories'), ('admin', 'Administer: settings, webhooks, deleting a whole person')], max_length=5), size=None)),
                ('subject', models.CharField(blank=True, default=None, max_length=200, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('trusts_open_webui', models.BooleanField(default=False, help_text='Its headers X-OpenWebUI-… name the palace and the conversation.')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='AuditLine',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('door', models.CharField(help_text='rest, mcp or proxy', max_length=10)),
                ('action', models.CharField(help_text='The method; for a tool, `call`.', max_length=10)),
                ('path', models.CharField(help_text='Without what follows a `?`.', max_length=300)),
                ('status', models.PositiveSmallIntegerField(help_text='As HTTP has it.')),
                ('key', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='writes', to='settings_app.apikey')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['owner', '-at'], name='audit_line_owner_at')],
            },
        ),
        migrations.CreateModel(
            name='SecondStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sealed_secret', models.TextField(help_text='Encrypted; see settings_app.secrets.')),
                ('begun_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('confirmed_at', models.DateTimeField(null=True)),
                ('last_step', models.BigIntegerField(default=0, help_text='Of the last code that was used; none up to it works again.')),
                ('recovery_digests', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), default=list, size=None)),
                ('owner', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='second_step', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        *UNIQUE_NAMES,
    ]
