from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("llm", "0003_sent"),
    ]

    operations = [
        migrations.AlterField(
            model_name="usage",
            name="purpose",
            field=models.CharField(choices=[("memory_embed", "Embedding memories and questions"), ("memory_extract", "Reading conversations"), ("memory_rewrite", "Rewriting questions"), ("memory_rerank", "Ordering what was found"), ("memory_qa", "Answering from memory"), ("memory_dream", "Dreaming"), ("chat", "Chat")], max_length=20),
        ),
    ]
