import django.db.models.deletion
import pgvector.django.halfvec
import uuid
from datetime import UTC, datetime

from django.db import migrations, models

from palace.models.migration_steps import belongs_to, goes_with_its_palace


class Migration(migrations.Migration):

    dependencies = [
        ('palace', '0012_facts_in_traces'),
    ]

    operations = [
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
            ],
            options={
                'ordering': ['-created_at', '-pk'],
            },
        ),
        migrations.AddField(
            model_name='room',
            name='episode_due_at',
            field=models.DateTimeField(default=datetime(1970, 1, 1, tzinfo=UTC), help_text="Since when its conversation's episode is to be made, or made anew.", null=True),
            # Rooms that are there already wait for their episodes, too.
            preserve_default=False,
        ),
        migrations.AddIndex(
            model_name='room',
            index=models.Index(condition=models.Q(('episode_due_at__isnull', False)), fields=['palace', 'episode_due_at'], name='room_episode_due'),
        ),
        migrations.AddField(
            model_name='episode',
            name='palace',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace'),
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
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(fields=['palace', 'conversation'], name='episode_by_conversation'),
        ),
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(fields=['palace', 'agent', '-ended_at'], name='episode_by_agent'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.UniqueConstraint(fields=('palace', 'id'), name='episode_in_palace'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.UniqueConstraint(fields=('palace', 'uuid'), name='episode_uuid'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.UniqueConstraint(condition=models.Q(('made_by', 'caller'), _negated=True), fields=('palace', 'source', 'conversation'), name='episode_one_derived'),
        ),
        goes_with_its_palace("palace_episode"),
        goes_with_its_palace("palace_episodevector"),
        belongs_to("palace_episodevector", "episode_id", "palace_episode", "CASCADE"),
    ]
