import django.contrib.postgres.fields
import django.db.models.deletion
import pgvector.django.halfvec
import uuid
from django.db import migrations, models

from palace.models.migration_steps import belongs_to, goes_with_its_palace


class Migration(migrations.Migration):

    dependencies = [
        ('palace', '0009_changes'),
    ]

    operations = [
        migrations.CreateModel(
            name='Evidence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('start', models.PositiveIntegerField()),
                ('end', models.PositiveIntegerField()),
            ],
            options={
                'verbose_name_plural': 'evidence',
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
                ('fate', models.CharField(blank=True, choices=[('', 'Held'), ('superseded', 'Something else took its place'), ('ended', 'It came to an end'), ('refined', 'It was said more exactly'), ('corrected', 'It was wrong'), ('deleted', 'Somebody deleted it'), ('unfounded', 'The words it rested on are gone')], default='', max_length=12)),
            ],
            options={
                'ordering': ['-recorded_at', '-pk'],
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
            ],
            options={
                'ordering': ['at', 'pk'],
            },
        ),
        migrations.AddField(
            model_name='drawer',
            name='facts_read_at',
            field=models.DateTimeField(help_text='When it was read for facts.', null=True),
        ),
        migrations.AddIndex(
            model_name='drawer',
            index=models.Index(condition=models.Q(('facts_read_at', None)), fields=['palace', 'room'], name='drawer_unread'),
        ),
        migrations.AddField(
            model_name='evidence',
            name='drawer',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='evidence', to='palace.drawer'),
        ),
        migrations.AddField(
            model_name='evidence',
            name='palace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace'),
        ),
        migrations.AddField(
            model_name='fact',
            name='object_entity',
            field=models.ForeignKey(db_constraint=False, db_index=False, help_text='Where the object is an entity: the fact is an edge of the graph.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='facts_about', to='palace.entity'),
        ),
        migrations.AddField(
            model_name='fact',
            name='palace',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace'),
        ),
        migrations.AddField(
            model_name='fact',
            name='subject',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='facts', to='palace.entity'),
        ),
        migrations.AddField(
            model_name='fact',
            name='supersedes',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='superseded_by', to='palace.fact'),
        ),
        migrations.AddField(
            model_name='evidence',
            name='fact',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='evidence', to='palace.fact'),
        ),
        migrations.AddField(
            model_name='factevent',
            name='palace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='palace.palace'),
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
        migrations.AddIndex(
            model_name='fact',
            index=models.Index(fields=['memory', 'palace'], name='fact_versions'),
        ),
        migrations.AddIndex(
            model_name='fact',
            index=models.Index(fields=['palace', 'subject', 'valid_from'], name='fact_by_subject'),
        ),
        migrations.AddIndex(
            model_name='fact',
            index=models.Index(condition=models.Q(('object_entity__isnull', False)), fields=['palace', 'object_entity'], name='fact_by_object'),
        ),
        migrations.AddIndex(
            model_name='fact',
            index=models.Index(fields=['palace', '-recorded_at'], name='fact_by_time'),
        ),
        migrations.AddIndex(
            model_name='fact',
            index=models.Index(fields=['palace', 'supersedes'], name='fact_by_superseded'),
        ),
        migrations.AddConstraint(
            model_name='fact',
            constraint=models.UniqueConstraint(fields=('palace', 'id'), name='fact_in_palace'),
        ),
        migrations.AddConstraint(
            model_name='fact',
            constraint=models.UniqueConstraint(fields=('palace', 'uuid'), name='fact_uuid'),
        ),
        migrations.AddConstraint(
            model_name='fact',
            constraint=models.UniqueConstraint(condition=models.Q(('retired_at', None)), fields=('palace', 'memory'), name='fact_one_active_version'),
        ),
        migrations.AddConstraint(
            model_name='fact',
            constraint=models.UniqueConstraint(condition=models.Q(('retired_at', None), ('single', True)), fields=('palace', 'subject', 'predicate', 'aspect', 'agent', 'run'), name='fact_one_at_a_time'),
        ),
        migrations.AddConstraint(
            model_name='fact',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('fate', ''), ('retired_at', None)), models.Q(models.Q(('retired_at', None), _negated=True), models.Q(('fate', ''), _negated=True)), _connector='OR'), name='fact_retired_with_a_reason'),
        ),
        migrations.AddIndex(
            model_name='evidence',
            index=models.Index(fields=['palace', 'drawer'], name='evidence_by_drawer'),
        ),
        migrations.AddConstraint(
            model_name='evidence',
            constraint=models.UniqueConstraint(fields=('palace', 'fact', 'drawer', 'start'), name='evidence_span'),
        ),
        migrations.AddIndex(
            model_name='factevent',
            index=models.Index(fields=['memory', 'palace', 'at'], name='fact_event_history'),
        ),
        migrations.AddConstraint(
            model_name='factevent',
            constraint=models.UniqueConstraint(fields=('palace', 'uuid'), name='fact_event_uuid'),
        ),
        *(
            goes_with_its_palace(table)
            for table in (
                "palace_fact",
                "palace_evidence",
                "palace_factvector",
                "palace_factevent",
            )
        ),
        belongs_to("palace_fact", "subject_id", "palace_entity", "CASCADE"),
        belongs_to(
            "palace_fact", "object_entity_id", "palace_entity", "SET NULL (object_entity_id)"
        ),
        belongs_to("palace_fact", "supersedes_id", "palace_fact", "SET NULL (supersedes_id)"),
        belongs_to("palace_evidence", "fact_id", "palace_fact", "CASCADE"),
        belongs_to("palace_evidence", "drawer_id", "palace_drawer", "CASCADE"),
        belongs_to("palace_factvector", "fact_id", "palace_fact", "CASCADE"),
    ]
