"""Columns that version 0.6.0 does not know get a default: its programs write on until they are replaced."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0004_off_record'),
    ]

    operations = [
        migrations.AlterField(
            model_name='conversation',
            name='off_record',
            field=models.BooleanField(db_default=False, default=False, help_text='On: nothing that is said from now on enters the palace.'),
        ),
        migrations.AlterField(
            model_name='conversation',
            name='recalls',
            field=models.BooleanField(db_default=True, default=True, help_text='Off: replies without memories.'),
        ),
        migrations.AlterField(
            model_name='message',
            name='file_name',
            field=models.CharField(blank=True, db_default='', default='', help_text='Of a text file that the user attached.', max_length=200),
        ),
        migrations.AlterField(
            model_name='message',
            name='off_record',
            field=models.BooleanField(db_default=False, default=False, help_text='On: it does not enter the palace unless somebody asks for it.'),
        ),
    ]
