"""All tables of the chat as they were after four migrations, made at once where there are none."""

from importlib import import_module

import django.db.models.deletion
import django.db.models.functions.text
import uuid
from django.db import migrations, models

from language.storable import LABEL_LENGTH
from palace.models.migration_steps import CreateTables

REPLACED = ("0001_initial", "0002_in_one_palace", "0003_asked_before", "0004_off_record")


class Migration(migrations.Migration):
    initial = True
    replaces = [("chat", name) for name in REPLACED]
    dependencies = [("palace", "0005_plural_of_aliases")]

    operations = [
        CreateTables([
            migrations.CreateModel(
                name='Agent',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('name', models.CharField(max_length=60)),
                    ('instructions', models.TextField(blank=True)),
                    ('model', models.CharField(blank=True, help_text="Empty: the settings' model.", max_length=200)),
                    ('recalls', models.BooleanField(default=True, help_text='Off: replies without memories; conversations are mined all the same.')),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
                options={
                    'ordering': ['pk'],
                    'constraints': [
                        models.UniqueConstraint(fields=('palace', 'id'), name='agent_in_palace'),
                        models.UniqueConstraint(fields=('palace', 'uuid'), name='agent_uuid'),
                        models.UniqueConstraint(models.F('palace'), django.db.models.functions.text.Lower('name'), name='agent_name'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='Conversation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('title', models.CharField(max_length=200)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('spoke_at', models.DateTimeField(help_text='When something was last said.')),
                    ('mine_due_at', models.DateTimeField(help_text='When what was said is to be mined; null when nothing waits.', null=True)),
                    ('recalls', models.BooleanField(default=True, help_text='Off: replies without memories.')),
                    ('off_record', models.BooleanField(default=False, help_text='On: nothing that is said from now on enters the palace.')),
                    ('agent', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='conversations', to='chat.agent')),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
                options={
                    'ordering': ['-spoke_at', '-pk'],
                    'indexes': [
                        models.Index(fields=['palace', '-spoke_at'], name='conversation_by_time'),
                        models.Index(condition=models.Q(('mine_due_at__isnull', False)), fields=['mine_due_at'], name='conversation_due'),
                    ],
                    'constraints': [
                        models.UniqueConstraint(fields=('palace', 'id'), name='conversation_in_palace'),
                        models.UniqueConstraint(fields=('palace', 'uuid'), name='conversation_uuid'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='Message',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('position', models.PositiveIntegerField(help_text='Order in the conversation, from 0.')),
                    ('role', models.CharField(help_text='user or assistant.', max_length=20)),
                    ('text', models.TextField(blank=True)),
                    ('status', models.CharField(choices=[('writing', 'being written'), ('done', 'done'), ('stopped', 'stopped by the user'), ('failed', 'broken off by an error')], default='done', max_length=10)),
                    ('mine', models.BooleanField(default=True, help_text='False for replies that only quote the palace itself.')),
                    ('model', models.CharField(blank=True, help_text='Who wrote it, for people.', max_length=300)),
                    ('recollection', models.UUIDField(help_text='The trace of the recall before it.', null=True)),
                    ('note', models.TextField(blank=True, help_text='What was degraded or skipped, or went wrong.')),
                    ('writer', models.UUIDField(help_text='The process that is writing it.', null=True)),
                    ('said_at', models.DateTimeField()),
                    ('mined_at', models.DateTimeField(help_text='When it was handed to the palace.', null=True)),
                    ('replaced_at', models.DateTimeField(help_text='When another try took its place.', null=True)),
                    ('off_record', models.BooleanField(default=False, help_text='On: it does not enter the palace unless somebody asks for it.')),
                    ('file_name', models.CharField(blank=True, help_text='Of a text file that the user attached.', max_length=LABEL_LENGTH)),
                    ('conversation', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='messages', to='chat.conversation')),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
                options={
                    'ordering': ['position', 'pk'],
                    'indexes': [
                        models.Index(fields=['palace', 'conversation', 'position'], name='message_in_order'),
                        models.Index(models.F('palace'), django.db.models.functions.text.MD5('text'), condition=models.Q(('role', 'user')), name='message_asked_before'),
                    ],
                    'constraints': [
                        models.UniqueConstraint(fields=('palace', 'id'), name='message_in_palace'),
                        models.UniqueConstraint(fields=('palace', 'uuid'), name='message_uuid'),
                        models.UniqueConstraint(condition=models.Q(('replaced_at', None)), fields=('palace', 'conversation', 'position'), name='message_position'),
                        models.UniqueConstraint(condition=models.Q(('status', 'writing')), fields=('palace', 'conversation'), name='message_one_writing'),
                    ],
                },
            ),
        ]),
        *import_module("chat.migrations.0002_in_one_palace").Migration.operations,
    ]
