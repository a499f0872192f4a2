"""All tables of a palace as they were after 37 migrations, made at once where there are none yet.

A new database takes a second in place of ten. One that has some of the 37 goes through the others,
which change data as well; those that only change data are not needed here.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.text
import django.utils.timezone
import palace.models.packed
import pgvector.django.extensions
import pgvector.django.halfvec
import uuid
from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from django.conf import settings
from django.db import migrations, models
from palace.models.migration_steps import CreateTables


REPLACED = (
    "0001_initial",
    "0002_in_one_palace",
    "0003_what_was_purged",
    "0004_count_kept_drawers",
    "0005_plural_of_aliases",
    "0006_recall_cases",
    "0007_packed_and_bits",
    "0008_drawer_traits",
    "0009_changes",
    "0010_facts",
    "0011_entity_activities",
    "0012_facts_in_traces",
    "0013_episodes",
    "0015_tellings",
    "0016_carried_in_traces",
    "0017_dreams",
    "0018_cut_as_a_table",
    "0019_told_through_the_api",
    "0020_webhooks",
    "0021_moved_is_told",
    "0022_asks_or_quotes_only",
    "0023_statements",
    "0024_proposal_labels",
    "0025_slugs_with_signs",
    "0026_row_security",
    "0027_drawers_of_agents",
    "0028_room_slots",
    "0029_import_speed",
    "0030_reviewed_rooms",
    "0031_keeping",
    "0032_room_counts",
    "0033_slugs_with_more_signs",
    "0034_accepted_messages",
    "0035_analyzer_version",
    "0036_entities_of_resets",
    "0037_labels_of_activities_and_fates",
)
CHANGES_DATA = ("UPDATE", "INSERT", "DELETE")


def sql_of(name: str) -> Iterator[migrations.RunSQL]:
    """What the migration `name` does to tables in SQL: keys, triggers, functions and storage."""
    for operation in import_module(f"palace.migrations.{name}").Migration.operations:
        if not isinstance(operation, migrations.RunSQL):
            continue
        # The tables above have the columns that such a statement converts.
        converts = bool(operation.state_operations)
        if not converts and not str(operation.sql).lstrip().startswith(CHANGES_DATA):
            yield operation


def add_constraints(_apps, schema_editor):
    """Django adds them last; the keys that follow refer to some."""
    while schema_editor.deferred_sql:
        schema_editor.execute(schema_editor.deferred_sql.pop(0))


class Migration(migrations.Migration):
    initial = True
    replaces = [("palace", name) for name in REPLACED]
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        pgvector.django.extensions.VectorExtension(
        ),
        CreateTables([
            migrations.CreateModel(
                name='Palace',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                    ('subject', models.CharField(blank=True, default='', max_length=200)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='palaces', to=settings.AUTH_USER_MODEL)),
                    ('highest_room', models.PositiveIntegerField(default=0, help_text='No room is given a number up to here again.')),
                    ('highest_wing', models.PositiveIntegerField(default=0, help_text='No wing is given a number up to here again.')),
                    ('purged_unnamed', models.PositiveIntegerField(db_default=0, default=0, editable=False, help_text='Drawers that were purged before purges kept their ids.')),
                    ('analyzer', models.PositiveSmallIntegerField(db_default=1, default=palace.models.current_analyzer, editable=False, help_text='The version of the analyzer that the postings are of.')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('owner', 'subject'), name='palace_owner_subject')],
                },
            ),
            migrations.CreateModel(
                name='Wing',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('number', models.PositiveIntegerField(help_text='W-042; counts within the palace; 0 is Unsorted.')),
                    ('slug', models.SlugField(allow_unicode=True, db_index=False, max_length=200)),
                    ('name', models.CharField(max_length=200)),
                    ('kind', models.CharField(choices=[('person', 'Person'), ('project', 'Project'), ('topic', 'Topic'), ('agent', 'Agent')], max_length=10)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('kept_months', models.PositiveIntegerField(help_text='Older messages go to the trash; null: they stay.', null=True)),
                    ('never', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), db_default=[], default=list, help_text='Names of people and topics; messages about them go to the trash.', size=None)),
                ],
                options={
                    'ordering': ['number'],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'id'), name='wing_in_palace'), models.UniqueConstraint(fields=('palace', 'uuid'), name='wing_uuid'), models.UniqueConstraint(fields=('palace', 'slug'), name='wing_slug'), models.UniqueConstraint(fields=('palace', 'number'), name='wing_number')],
                },
            ),
            migrations.CreateModel(
                name='Room',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('number', models.PositiveIntegerField(help_text='R-11; counts within the palace.')),
                    ('source', models.CharField(help_text='Who brought it: chat, chatgpt, plain …', max_length=50)),
                    ('external_id', models.CharField(help_text="The conversation's id there.", max_length=200)),
                    ('agent', models.CharField(blank=True, help_text='Who took part, if named.', max_length=200)),
                    ('title', models.CharField(max_length=200)),
                    ('started_at', models.DateTimeField()),
                    ('ended_at', models.DateTimeField()),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('wing', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='rooms', to='palace.wing')),
                    ('highest_drawer', models.PositiveIntegerField(default=0, help_text='No drawer is given a number up to here again.')),
                    ('episode_due_at', models.DateTimeField(help_text="Since when its conversation's episode is to be made, or made anew.", null=True)),
                    ('slot', models.PositiveIntegerField(help_text="Its place along the wing's corridor; null until it is drawn.", null=True)),
                    ('reviewed_at', models.DateTimeField(help_text='When its owner said to keep it although it is never recalled.', null=True)),
                    ('stored_count', models.PositiveIntegerField(db_default=0, default=0, editable=False, help_text='Drawers, those in the trash too.')),
                    ('stored_bytes', models.PositiveBigIntegerField(db_default=0, default=0, editable=False, help_text='Of their texts, as UTF-8.')),
                    ('kept_count', models.PositiveIntegerField(db_default=0, default=0, editable=False, help_text='Drawers outside the trash.')),
                    ('kept_bytes', models.PositiveBigIntegerField(db_default=0, default=0, editable=False, help_text='Of their texts, as UTF-8.')),
                ],
                options={
                    'ordering': ['started_at', 'number'],
                    'indexes': [models.Index(fields=['palace', 'wing', 'started_at'], name='room_by_wing'), models.Index(condition=models.Q(('episode_due_at__isnull', False)), fields=['palace', 'episode_due_at'], name='room_episode_due'), models.Index(condition=models.Q(('slot', None)), fields=['palace'], name='room_not_placed')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'id'), name='room_in_palace'), models.UniqueConstraint(fields=('palace', 'uuid'), name='room_uuid'), models.UniqueConstraint(fields=('palace', 'number'), name='room_number'), models.UniqueConstraint(fields=('palace', 'source', 'external_id', 'wing'), name='room_conversation'), models.UniqueConstraint(fields=('palace', 'wing', 'slot'), name='room_slot')],
                },
            ),
            migrations.CreateModel(
                name='Closet',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('slug', models.SlugField(allow_unicode=True, db_index=False, max_length=200)),
                    ('title', models.CharField(max_length=200)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('room', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='closets', to='palace.room')),
                ],
                options={
                    'ordering': ['pk'],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'id'), name='closet_in_palace'), models.UniqueConstraint(fields=('palace', 'uuid'), name='closet_uuid'), models.UniqueConstraint(fields=('palace', 'room', 'slug'), name='closet_slug')],
                },
            ),
            migrations.CreateModel(
                name='Entity',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('kind', models.CharField(choices=[('person', 'Person'), ('place', 'Place'), ('organisation', 'Organisation'), ('project', 'Project'), ('event', 'Event'), ('item', 'Item')], max_length=12)),
                    ('slug', models.SlugField(allow_unicode=True, db_index=False, max_length=200)),
                    ('name', models.CharField(max_length=200)),
                    ('aliases', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), default=list, size=None)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
                options={
                    'verbose_name_plural': 'entities',
                    'constraints': [models.UniqueConstraint(fields=('palace', 'id'), name='entity_in_palace'), models.UniqueConstraint(fields=('palace', 'uuid'), name='entity_uuid'), models.UniqueConstraint(fields=('palace', 'kind', 'slug'), name='entity_slug')],
                },
            ),
            migrations.CreateModel(
                name='Drawer',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('number', models.PositiveIntegerField(help_text='D-007; counts within the room.')),
                    ('source', models.CharField(max_length=50)),
                    ('conversation', models.CharField(help_text="The conversation's id at the source.", max_length=200)),
                    ('external_id', models.CharField(help_text="The message's id in its conversation.", max_length=200)),
                    ('position', models.PositiveIntegerField(help_text='Order within the conversation, from 0.')),
                    ('role', models.CharField(help_text='user, assistant, system or tool.', max_length=20)),
                    ('speaker', models.CharField(blank=True, max_length=200)),
                    ('text', models.TextField()),
                    ('said_at', models.DateTimeField(help_text='When it was said, not when it was stored.')),
                    ('tags', models.JSONField(default=dict, help_text='AAAK tags by letter: {"p": ["Derek"]}.')),
                    ('preference', models.FloatField(default=0, help_text='How much it states a lasting wish or taste, 0 to 1.')),
                    ('terms', models.PositiveIntegerField(default=0, help_text='Its length as BM25 counts it.')),
                    ('filed_at', models.DateTimeField(auto_now_add=True)),
                    ('mined_at', models.DateTimeField(help_text='When passages and postings were written.', null=True)),
                    ('trashed_at', models.DateTimeField(null=True)),
                    ('closet', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='drawers', to='palace.closet')),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('room', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='drawers', to='palace.room')),
                    ('traits', models.SmallIntegerField(db_default=0, default=0, help_text='What kind of thing it says, one bit a trait.')),
                    ('facts_read_at', models.DateTimeField(help_text='When it was read for facts.', null=True)),
                    ('metadata', models.JSONField(help_text='What its teller wants kept beside it.', null=True)),
                    ('agent', models.CharField(blank=True, db_default='', default='', help_text='Only this agent, and calls without one, find it; empty: everyone.', max_length=200)),
                ],
                options={
                    'ordering': ['room', 'number'],
                    'indexes': [models.Index(fields=['palace', 'source', 'conversation', 'position'], name='drawer_in_order'), models.Index(fields=['palace', 'closet'], name='drawer_by_closet'), models.Index(fields=['palace', 'said_at'], name='drawer_by_time'), models.Index(condition=models.Q(('mined_at', None)), fields=['palace', 'room'], name='drawer_unmined'), models.Index(condition=models.Q(('trashed_at__isnull', False)), fields=['palace', 'trashed_at'], name='drawer_trash'), models.Index(condition=models.Q(('trashed_at', None)), fields=['palace', 'room'], name='drawer_kept'), models.Index(condition=models.Q(('facts_read_at', None)), fields=['palace', 'room'], name='drawer_unread'), models.Index(condition=models.Q(('agent', ''), _negated=True), fields=['palace', 'agent'], name='drawer_by_agent')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'id'), name='drawer_in_palace'), models.UniqueConstraint(fields=('palace', 'uuid'), name='drawer_uuid'), models.UniqueConstraint(fields=('palace', 'room', 'number'), name='drawer_number'), models.UniqueConstraint(fields=('palace', 'source', 'conversation', 'external_id'), name='drawer_message')],
                },
            ),
            migrations.CreateModel(
                name='EmbeddingSpace',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('provider', models.CharField(help_text="local, a preset's name or a base URL.", max_length=200)),
                    ('model', models.CharField(max_length=200)),
                    ('dimensions', models.PositiveIntegerField()),
                    ('active', models.BooleanField(default=False)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('provider', 'model', 'dimensions'), name='embedding_space_model'), models.UniqueConstraint(condition=models.Q(('active', True)), fields=('active',), name='embedding_space_one_active')],
                },
            ),
            migrations.CreateModel(
                name='Mention',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('start', models.PositiveIntegerField()),
                    ('end', models.PositiveIntegerField()),
                    ('drawer', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='mentions', to='palace.drawer')),
                    ('entity', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='mentions', to='palace.entity')),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
                options={
                    'indexes': [models.Index(fields=['palace', 'entity'], name='mention_by_entity')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'drawer', 'start', 'entity'), name='mention_span')],
                },
            ),
            migrations.CreateModel(
                name='ImportJob',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('file_name', models.CharField(max_length=255)),
                    ('file_sha256', models.CharField(max_length=64)),
                    ('format', models.CharField(max_length=30)),
                    ('spool', models.CharField(help_text='Its conversations, one a line, ready to file.', max_length=500)),
                    ('spool_offset', models.BigIntegerField(default=0, help_text='Bytes of the spool already filed.')),
                    ('status', models.CharField(choices=[('ready', 'previewed, not started'), ('running', 'running'), ('done', 'done'), ('failed', 'stopped by an error')], default='ready', max_length=10)),
                    ('preview', models.JSONField(default=dict)),
                    ('conversations_total', models.PositiveIntegerField(default=0)),
                    ('conversations_done', models.PositiveIntegerField(default=0)),
                    ('messages_total', models.PositiveIntegerField(default=0)),
                    ('messages_stored', models.PositiveIntegerField(default=0)),
                    ('messages_present', models.PositiveIntegerField(default=0, help_text='Were already here.')),
                    ('messages_skipped', models.JSONField(default=dict, help_text='How many, by reason.')),
                    ('error', models.TextField(blank=True)),
                    ('progress_at', models.DateTimeField(help_text='When it was started or last went on.', null=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('finished_at', models.DateTimeField(null=True)),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('measured_done', models.PositiveIntegerField(default=0, help_text='Messages that were done when the measuring began.')),
                    ('measured_from', models.DateTimeField(help_text='Since when its speed is measured; restarted after a pause.', null=True)),
                ],
                options={
                    'ordering': ['-created_at', '-pk'],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'uuid'), name='import_job_uuid')],
                },
            ),
            migrations.CreateModel(
                name='Activity',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('kind', models.CharField(choices=[('memory_mined', 'Remembered'), ('chats_imported', 'Imported'), ('drawers_trashed', 'Moved to the trash'), ('drawers_restored', 'Restored'), ('drawers_purged', 'Deleted for good'), ('drawers_moved', 'Moved'), ('wing_changed', 'Wings renamed'), ('wings_merged', 'Wings merged'), ('entities_merged', 'People and things merged'), ('entity_split', 'People and things split'), ('entity_undone', 'Merges and splits undone'), ('dreamt', 'Dreamt')], max_length=30)),
                    ('summary', models.CharField(help_text='One sentence for a person.', max_length=300)),
                    ('detail', models.JSONField(default=dict, help_text='Its figures, and what it was about.')),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
                options={
                    'verbose_name_plural': 'activities',
                    'ordering': ['-created_at', '-pk'],
                    'indexes': [models.Index(fields=['palace', '-created_at'], name='activity_by_time')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'uuid'), name='activity_uuid'), models.UniqueConstraint(fields=('palace', 'id'), name='activity_in_palace')],
                },
            ),
            migrations.CreateModel(
                name='Passage',
                fields=[
                    ('pk', models.CompositePrimaryKey('palace_id', 'space_id', 'drawer_id', 'ordinal', blank=True, editable=False, primary_key=True, serialize=False)),
                    ('ordinal', models.PositiveSmallIntegerField()),
                    ('start', models.PositiveIntegerField(help_text='Offset of its first character in the drawer.')),
                    ('end', models.PositiveIntegerField(help_text='Offset past its last character.')),
                    ('embedding', pgvector.django.halfvec.HalfVectorField(help_text='Of length 1; null until it could be made.', null=True)),
                    ('drawer', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='passages', to='palace.drawer')),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='palace.embeddingspace')),
                    ('bits', models.GeneratedField(db_persist=True, expression=models.Func(models.F('embedding'), function='binary_quantize'), help_text='Which of its numbers are above zero.', null=True, output_field=palace.models.packed.BitsField())),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('embedding', None)), fields=['palace', 'space'], name='passage_unembedded')],
                },
            ),
            migrations.CreateModel(
                name='Posting',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('term', models.CharField(max_length=64)),
                    ('drawers', palace.models.packed.PackedField(kind='i8')),
                    ('counts', palace.models.packed.PackedField(help_text='How often the term is in each.', kind='i2')),
                    ('lengths', palace.models.packed.PackedField(help_text='How many terms each one has.', kind='i2')),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('total', models.IntegerField(default=0, help_text='Sum of the lengths, for the empty term; else 0.')),
                    ('merged', models.BooleanField(default=False, help_text='Written by compaction, and not touched since.')),
                    ('number', models.GeneratedField(db_persist=True, expression=django.db.models.expressions.CombinedExpression(django.db.models.functions.text.Length(models.F('drawers')), '/', models.Value(8)), help_text='Of the drawers.', output_field=models.IntegerField())),
                ],
                options={
                    'indexes': [models.Index(fields=['palace', 'term'], include=('number', 'total', 'merged'), name='posting_term_sizes')],
                },
            ),
            migrations.CreateModel(
                name='RecollectionTrace',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('query', models.TextField()),
                    ('recipe', models.CharField(max_length=50)),
                    ('now', models.DateTimeField(help_text="The moment the question's words of time refer to.")),
                    ('hits', models.JSONField(help_text='Best first: drawer, pointer, score, share of each signal, why not in the block.')),
                    ('candidates', models.JSONField(help_text="The best of those that were cut: the names of the signals, and of each a row of its drawer's key, score, why it was cut, place by score, and share of each signal.")),
                    ('context', models.TextField(blank=True, help_text='The block given to a model; may be empty.')),
                    ('notes', models.JSONField(default=list, help_text='What was degraded or skipped, in sentences.')),
                    ('duration_ms', models.FloatField()),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('figures', models.JSONField(default=dict, help_text='How many were looked at, and how many cut.')),
                    ('reading', models.JSONField(default=dict, help_text='How the question was understood.')),
                    ('facts', models.JSONField(default=list, help_text='What stood before them as known: memory, drawer it cites, pointer, score.')),
                    ('carried', models.JSONField(default=list, help_text='What stood there from earlier turns: item, drawer, pointer, turn.')),
                ],
                options={
                    'ordering': ['-created_at', '-pk'],
                    'indexes': [models.Index(fields=['palace', '-created_at'], name='trace_by_time')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'uuid'), name='trace_uuid')],
                },
            ),
            migrations.CreateModel(
                name='WingAlias',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('slug', models.SlugField(allow_unicode=True, db_index=False, max_length=200)),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('wing', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='aliases', to='palace.wing')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('palace', 'slug'), name='wing_alias_slug')],
                    'verbose_name_plural': 'wing aliases',
                },
            ),
            migrations.CreateModel(
                name='RecallCase',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('query', models.TextField()),
                    ('now', models.DateTimeField(help_text="The moment the question's words of time refer to.")),
                    ('day', models.DateField(help_text="The day of `now` by the owner's calendar.")),
                    ('tried_at', models.DateTimeField(help_text='When recall was last tried on it.', null=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
                options={
                    'ordering': ['-created_at', '-pk'],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'id'), name='case_in_palace'), models.UniqueConstraint(fields=('palace', 'uuid'), name='case_uuid'), models.UniqueConstraint(models.F('palace'), models.F('day'), django.db.models.functions.text.MD5('query'), name='case_question')],
                },
            ),
            migrations.CreateModel(
                name='ExpectedDrawer',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('place', models.PositiveIntegerField(help_text='Where it came at the last try, from 1; null where it did not.', null=True)),
                    ('drawer', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='palace.drawer')),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('case', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='expected', to='palace.recallcase')),
                ],
                options={
                    'ordering': ['pk'],
                    'indexes': [models.Index(fields=['palace', 'drawer'], name='expected_drawer')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'case', 'drawer'), name='expected_once')],
                },
            ),
            migrations.CreateModel(
                name='Change',
                fields=[
                    ('pk', models.CompositePrimaryKey('palace_id', 'revision', blank=True, editable=False, primary_key=True, serialize=False)),
                    ('revision', models.BigIntegerField()),
                    ('drawers', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Their keys; null where they are too many.', null=True, size=None)),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
            ),
            migrations.CreateModel(
                name='Statement',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('ordinal', models.PositiveIntegerField(help_text='Order within the message, from 0.')),
                    ('by', models.CharField(help_text='Which door brought it: mining, api, sdk …', max_length=20)),
                    ('agent', models.CharField(blank=True, max_length=200)),
                    ('run', models.CharField(blank=True, max_length=200)),
                    ('metadata', models.JSONField(default=dict, help_text="The caller's own.")),
                    ('content', models.JSONField(help_text='The candidate; its words by message and offsets.')),
                    ('judged', models.JSONField(help_text='What a model decided; null: rules judge.', null=True)),
                    ('drawer', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='palace.drawer')),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
                options={
                    'indexes': [models.Index(fields=['palace', 'agent', 'run'], name='statement_by_scope')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'id'), name='statement_in_palace'), models.UniqueConstraint(fields=('palace', 'drawer', 'ordinal'), name='statement_of_drawer')],
                },
            ),
            migrations.CreateModel(
                name='Fact',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('memory', models.UUIDField(default=uuid.uuid4, editable=False, help_text='Shared by all versions of one memory.')),
                    ('type', models.CharField(choices=[('fact', 'Fact'), ('preference', 'Preference'), ('opinion', 'Opinion'), ('event', 'Event')], max_length=12)),
                    ('predicate', models.CharField(max_length=64)),
                    ('object', models.TextField(blank=True)),
                    ('aspect', models.CharField(blank=True, max_length=200)),
                    ('stance', models.CharField(blank=True, max_length=20)),
                    ('text', models.TextField(help_text='The whole statement, in the third person.')),
                    ('confidence', models.FloatField()),
                    ('category', models.CharField(blank=True, help_text='home/pets', max_length=200)),
                    ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), default=list, size=None)),
                    ('metadata', models.JSONField(default=dict, help_text="The caller's own.")),
                    ('agent', models.CharField(blank=True, max_length=200)),
                    ('run', models.CharField(blank=True, max_length=200)),
                    ('single', models.BooleanField(help_text='Of its subject, predicate and aspect there is one at a time.')),
                    ('valid_from', models.DateTimeField(help_text='Null: since when is not known.', null=True)),
                    ('valid_to', models.DateTimeField(null=True)),
                    ('recorded_at', models.DateTimeField()),
                    ('retired_at', models.DateTimeField(null=True)),
                    ('fate', models.CharField(blank=True, choices=[('', 'Active'), ('superseded', 'Replaced by a newer fact'), ('ended', 'Ended'), ('refined', 'Replaced by a more exact one'), ('corrected', 'Replaced by a correction'), ('deleted', 'Deleted'), ('unfounded', 'Its sources were deleted')], default='', max_length=12)),
                    ('object_entity', models.ForeignKey(db_constraint=False, db_index=False, help_text='Where the object is an entity: the fact is an edge of the graph.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='facts_about', to='palace.entity')),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('subject', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='facts', to='palace.entity')),
                    ('supersedes', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='superseded_by', to='palace.fact')),
                    ('withdrawn_at', models.DateTimeField(help_text='When we dropped that it had been so until `valid_to`.', null=True)),
                    ('settled_at', models.DateTimeField(help_text='When it was written by hand or by a program, not learnt.', null=True)),
                    ('closed_by', models.ForeignKey(db_constraint=False, db_index=False, help_text='What was said that ended it; null where it was ended otherwise.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='palace.statement')),
                    ('opened_by', models.ForeignKey(db_constraint=False, db_index=False, help_text='What was said that it comes from; null where it was written otherwise.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='palace.statement')),
                ],
                options={
                    'ordering': ['-recorded_at', '-pk'],
                    'indexes': [models.Index(fields=['memory', 'palace'], name='fact_versions'), models.Index(fields=['palace', 'subject', 'valid_from'], name='fact_by_subject'), models.Index(condition=models.Q(('object_entity__isnull', False)), fields=['palace', 'object_entity'], name='fact_by_object'), models.Index(fields=['palace', '-recorded_at'], name='fact_by_time'), models.Index(fields=['palace', 'supersedes'], name='fact_by_superseded'), models.Index(condition=models.Q(('opened_by__isnull', False)), fields=['palace', 'opened_by'], name='fact_by_opening'), models.Index(condition=models.Q(('closed_by__isnull', False)), fields=['palace', 'closed_by'], name='fact_by_closing')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'id'), name='fact_in_palace'), models.UniqueConstraint(fields=('palace', 'uuid'), name='fact_uuid'), models.UniqueConstraint(condition=models.Q(('retired_at', None)), fields=('palace', 'memory'), name='fact_one_active_version'), models.UniqueConstraint(condition=models.Q(('retired_at', None), ('single', True)), fields=('palace', 'subject', 'predicate', 'aspect', 'agent', 'run'), name='fact_one_at_a_time'), models.CheckConstraint(condition=models.Q(models.Q(('fate', ''), ('retired_at', None)), models.Q(models.Q(('retired_at', None), _negated=True), models.Q(('fate', ''), _negated=True)), _connector='OR'), name='fact_retired_with_a_reason')],
                },
            ),
            migrations.CreateModel(
                name='Evidence',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('start', models.PositiveIntegerField()),
                    ('end', models.PositiveIntegerField()),
                    ('drawer', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='evidence', to='palace.drawer')),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('fact', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='evidence', to='palace.fact')),
                ],
                options={
                    'verbose_name_plural': 'evidence',
                    'indexes': [models.Index(fields=['palace', 'drawer'], name='evidence_by_drawer')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'fact', 'drawer', 'start'), name='evidence_span')],
                },
            ),
            migrations.CreateModel(
                name='FactEvent',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('memory', models.UUIDField()),
                    ('event', models.CharField(choices=[('ADD', 'Add'), ('UPDATE', 'Update'), ('DELETE', 'Delete')], max_length=6)),
                    ('old_text', models.TextField(null=True)),
                    ('new_text', models.TextField(null=True)),
                    ('why', models.CharField(blank=True, max_length=200)),
                    ('by', models.CharField(help_text='Who did it: mining, api, person, …', max_length=20)),
                    ('agent', models.CharField(blank=True, max_length=200)),
                    ('run', models.CharField(blank=True, max_length=200)),
                    ('at', models.DateTimeField()),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
                options={
                    'ordering': ['at', 'pk'],
                    'indexes': [models.Index(fields=['memory', 'palace', 'at'], name='fact_event_history'), models.Index(fields=['palace', '-at', '-id'], name='fact_event_newest')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'uuid'), name='fact_event_uuid')],
                },
            ),
            migrations.CreateModel(
                name='FactVector',
                fields=[
                    ('pk', models.CompositePrimaryKey('palace_id', 'space_id', 'fact_id', blank=True, editable=False, primary_key=True, serialize=False)),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='palace.embeddingspace')),
                    ('fact', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='vectors', to='palace.fact')),
                    ('embedding', pgvector.django.halfvec.HalfVectorField(help_text='Of length 1.')),
                ],
            ),
            migrations.CreateModel(
                name='Episode',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('source', models.CharField(blank=True, help_text='As of drawers; empty where a caller has stored it.', max_length=50)),
                    ('conversation', models.CharField(help_text="The conversation's id at the source.", max_length=200)),
                    ('agent', models.CharField(blank=True, max_length=200)),
                    ('summary', models.TextField()),
                    ('key_decisions', models.JSONField(default=list)),
                    ('entities', models.JSONField(default=list)),
                    ('tools', models.JSONField(default=list)),
                    ('made_by', models.CharField(choices=[('local', 'Local rules'), ('model', 'A language model'), ('caller', 'Whoever stored it')], max_length=6)),
                    ('model', models.CharField(blank=True, help_text='Which one, if one made it.', max_length=200)),
                    ('input_hash', models.CharField(blank=True, help_text='Of what it was made from; what is the same stays.', max_length=64)),
                    ('messages', models.PositiveIntegerField(help_text='How many it is of; null where the caller has not said.', null=True)),
                    ('started_at', models.DateTimeField(help_text='When the first of them was said.', null=True)),
                    ('ended_at', models.DateTimeField(help_text='When the last of them was said.', null=True)),
                    ('created_at', models.DateTimeField()),
                    ('updated_at', models.DateTimeField()),
                    ('trashed_at', models.DateTimeField(help_text='Since when words it may hold are in the trash.', null=True)),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
                options={
                    'ordering': ['-created_at', '-pk'],
                    'indexes': [models.Index(fields=['palace', 'conversation'], name='episode_by_conversation'), models.Index(fields=['palace', 'agent', '-ended_at'], name='episode_by_agent')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'id'), name='episode_in_palace'), models.UniqueConstraint(fields=('palace', 'uuid'), name='episode_uuid'), models.UniqueConstraint(condition=models.Q(('made_by', 'caller'), _negated=True), fields=('palace', 'source', 'conversation'), name='episode_one_derived')],
                },
            ),
            migrations.CreateModel(
                name='EpisodeVector',
                fields=[
                    ('pk', models.CompositePrimaryKey('palace_id', 'space_id', 'episode_id', blank=True, editable=False, primary_key=True, serialize=False)),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='palace.embeddingspace')),
                    ('episode', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='vectors', to='palace.episode')),
                    ('embedding', pgvector.django.halfvec.HalfVectorField(help_text='Of length 1.')),
                ],
            ),
            migrations.CreateModel(
                name='Telling',
                fields=[
                    ('pk', models.CompositePrimaryKey('palace_id', 'drawer_id', blank=True, editable=False, primary_key=True, serialize=False)),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('drawer', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='palace.drawer')),
                    ('by', models.CharField(help_text='Which door brought it: api, sdk …', max_length=20)),
                    ('agent', models.CharField(blank=True, max_length=200)),
                    ('run', models.CharField(blank=True, max_length=200)),
                    ('metadata', models.JSONField(default=dict, help_text="The caller's own.")),
                    ('prompt', models.TextField(blank=True, help_text='In place of our instructions for reading.')),
                    ('judging_prompt', models.TextField(blank=True, help_text='In place of ours for judging.')),
                    ('filters', models.JSONField(help_text='What it is judged beside has to meet them.', null=True)),
                ],
            ),
            migrations.CreateModel(
                name='DreamMark',
                fields=[
                    ('palace', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='+', serialize=False, to='palace.palace')),
                    ('drawer', models.BigIntegerField(default=0, help_text='Messages with keys up to here were looked at for preferences.')),
                    ('dreamt_at', models.DateTimeField(help_text='When the last dream began.', null=True)),
                ],
            ),
            migrations.CreateModel(
                name='Proposal',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('uuid', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('kind', models.CharField(choices=[('merge', 'Merge duplicates'), ('refine', 'File it better'), ('drop', 'Remove noise'), ('outdated', 'Remove outdated'), ('contradiction', 'Resolve conflict'), ('anti_pattern', 'What not to do'), ('preference', 'What you seem to like')], max_length=14)),
                    ('status', models.CharField(choices=[('proposed', 'Proposed'), ('accepted', 'Accepted'), ('rejected', 'Rejected'), ('undone', 'Undone'), ('stale', 'Stale')], default='proposed', max_length=10)),
                    ('fingerprint', models.UUIDField(help_text='The same for the same change of the same statements, whoever finds it again.')),
                    ('payload', models.JSONField(help_text='What it changes, before and after.')),
                    ('applied', models.JSONField(help_text='What accepting it did, for undoing it.', null=True)),
                    ('made_at', models.DateTimeField(help_text='When it was proposed, the last time.')),
                    ('decided_at', models.DateTimeField(null=True)),
                    ('decided_by', models.CharField(blank=True, help_text='person, or dream.', max_length=20)),
                    ('dream', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='proposals', to='palace.activity')),
                    ('palace', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
                options={
                    'ordering': ['-made_at', '-pk'],
                    'indexes': [models.Index(fields=['palace', 'status', '-made_at'], name='proposal_by_status'), models.Index(fields=['palace', 'dream'], name='proposal_by_dream')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'id'), name='proposal_in_palace'), models.UniqueConstraint(fields=('palace', 'uuid'), name='proposal_uuid'), models.UniqueConstraint(fields=('palace', 'fingerprint'), name='proposal_once'), models.CheckConstraint(condition=models.Q(('decided_at', None), models.Q(('status', 'proposed'), _negated=True), _connector='OR'), name='proposal_undecided')],
                },
            ),
            migrations.CreateModel(
                name='ProposalFact',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('role', models.CharField(choices=[('source', 'Source'), ('beside', 'Beside'), ('made', 'Made')], max_length=6)),
                    ('fact', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='palace.fact')),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('proposal', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='about', to='palace.proposal')),
                ],
                options={
                    'ordering': ['pk'],
                    'indexes': [models.Index(fields=['palace', 'fact'], name='proposal_by_fact')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'proposal', 'fact'), name='proposal_fact')],
                },
            ),
            migrations.CreateModel(
                name='ProposalQuote',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('start', models.PositiveIntegerField()),
                    ('end', models.PositiveIntegerField()),
                    ('drawer', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='palace.drawer')),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                    ('proposal', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='words', to='palace.proposal')),
                ],
                options={
                    'ordering': ['pk'],
                    'indexes': [models.Index(fields=['palace', 'drawer'], name='proposal_by_drawer')],
                    'constraints': [models.UniqueConstraint(fields=('palace', 'proposal', 'drawer', 'start'), name='proposal_quote')],
                },
            ),
            migrations.CreateModel(
                name='IdempotentWrite',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('key', models.CharField(max_length=200)),
                    ('fingerprint', models.CharField(help_text='Of method, path and body.', max_length=64)),
                    ('claimed_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('status', models.PositiveSmallIntegerField(null=True)),
                    ('body', models.JSONField(null=True)),
                    ('headers', models.JSONField(default=dict)),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'indexes': [models.Index(fields=['claimed_at'], name='idempotent_write_age')],
                    'constraints': [models.UniqueConstraint(fields=('owner', 'key'), name='idempotent_write_once')],
                },
            ),
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
            migrations.CreateModel(
                name='AcceptedMessage',
                fields=[
                    ('pk', models.CompositePrimaryKey('palace_id', 'uuid', blank=True, editable=False, primary_key=True, serialize=False)),
                    ('uuid', models.UUIDField(help_text="The drawer's.")),
                    ('digest', models.BinaryField(help_text="The first 16 bytes of the text's SHA-256; null once it is purged.", null=True)),
                    ('purged_at', models.DateTimeField(null=True)),
                    ('purged_key', models.BinaryField(help_text='Of a purged message: a digest of its ids, by which the chat knows its own.', null=True)),
                    ('palace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace')),
                ],
            ),
        ]),
        migrations.RunPython(add_constraints, migrations.RunPython.noop),
        *chain.from_iterable(map(sql_of, REPLACED)),
    ]
