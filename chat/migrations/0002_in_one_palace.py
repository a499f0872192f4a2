"""Keys that say a row and what it belongs to are of one palace."""

from django.db import migrations

from palace.models.migration_steps import belongs_to, goes_with_its_palace


class Migration(migrations.Migration):
    dependencies = [("chat", "0001_initial"), ("palace", "0002_in_one_palace")]

    operations = [
        goes_with_its_palace("chat_agent"),
        goes_with_its_palace("chat_conversation"),
        goes_with_its_palace("chat_message"),
        belongs_to("chat_conversation", "agent_id", "chat_agent", "SET NULL (agent_id)"),
        belongs_to("chat_message", "conversation_id", "chat_conversation", "CASCADE"),
    ]
