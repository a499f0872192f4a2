import django.db.models.deletion
from django.db import migrations, models

from palace.models.migration_steps import belongs_to, goes_with_its_palace


class Migration(migrations.Migration):

    dependencies = [
        ('palace', '0013_episodes'),
    ]

    operations = [
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
        goes_with_its_palace("palace_telling"),
        belongs_to("palace_telling", "drawer_id", "palace_drawer", "CASCADE"),
        migrations.AddIndex(
            model_name='factevent',
            index=models.Index(fields=['palace', '-at', '-id'], name='fact_event_newest'),
        ),
    ]
