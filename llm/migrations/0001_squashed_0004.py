"""The tables of `llm` as they were after four migrations, made at once where there are none."""

import django.contrib.postgres.fields
import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models

REPLACED = ("0001_initial", "0002_dreaming", "0003_sent", "0004_rewriting")


class Migration(migrations.Migration):
    initial = True
    replaces = [("llm", name) for name in REPLACED]
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name='CachedEmbedding',
            fields=[
                ('key', models.UUIDField(help_text='The first half of an HMAC-SHA256 over model and text.', primary_key=True, serialize=False)),
                ('vector', models.BinaryField(help_text='Little-endian float16.')),
                ('used_on', models.DateField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name='Usage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('purpose', models.CharField(choices=[("memory_embed", "Embedding memories and questions"), ("memory_extract", "Reading conversations"), ("memory_rewrite", "Rewriting questions"), ("memory_rerank", "Ordering what was found"), ("memory_qa", "Answering from memory"), ("memory_dream", "Dreaming"), ("chat", "Chat")], max_length=20)),
                ('provider', models.CharField(help_text="local, a preset's name or a base URL.", max_length=200)),
                ('model', models.CharField(max_length=200)),
                ('tokens_in', models.PositiveIntegerField(default=0)),
                ('tokens_out', models.PositiveIntegerField(default=0)),
                ('cost_usd', models.DecimalField(decimal_places=8, help_text='Null where the price is not known.', max_digits=14, null=True)),
                ('duration_ms', models.PositiveIntegerField(help_text='Retries and waits included.')),
                ('outcome', models.CharField(default='ok', help_text='ok, cancelled, or the code of what went wrong.', max_length=40)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('characters', models.PositiveIntegerField(default=0, help_text='Of the texts that were sent.')),
                ('host', models.CharField(blank=True, default='', help_text='Who was sent something; empty if nobody.', max_length=255)),
                ('references', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=80), blank=True, default=list, help_text='What it was made of, such as drawer:12; never its text.', size=None)),
                ('requests', models.PositiveSmallIntegerField(default=0, help_text='How often it was sent, retries included; 0 if it never was.')),
                ('owner', models.ForeignKey(help_text="For whom; null for work that is nobody's in particular.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name='model_usage', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'usage',
                'indexes': [models.Index(fields=['owner', 'created_at'], name='usage_by_owner'), models.Index(condition=models.Q(('requests__gt', 0)), fields=['owner', '-id'], name='usage_sent')],
            },
        ),
    ]
