"""Each room has a place on the floor plan, which it keeps while it stays in its wing."""

from django.db import migrations, models
from django.db.models import Q

LEAVE = """
CREATE FUNCTION palace_room_leaves_its_slot() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.slot := NULL;
    RETURN NEW;
END
$$;
CREATE TRIGGER palace_room_moves BEFORE UPDATE OF wing_id ON palace_room
    FOR EACH ROW WHEN (OLD.wing_id IS DISTINCT FROM NEW.wing_id)
    EXECUTE FUNCTION palace_room_leaves_its_slot();
ALTER TABLE palace_room ENABLE ALWAYS TRIGGER palace_room_moves
"""
STAY = """
DROP TRIGGER palace_room_moves ON palace_room;
DROP FUNCTION palace_room_leaves_its_slot
"""


class Migration(migrations.Migration):
    dependencies = [("palace", "0027_drawers_of_agents")]

    operations = [
        migrations.AddField(
            "room",
            "slot",
            models.PositiveIntegerField(
                null=True, help_text="Its place along the wing's corridor; null until it is drawn."
            ),
        ),
        migrations.AddConstraint(
            "room",
            models.UniqueConstraint(fields=["palace", "wing", "slot"], name="room_slot"),
        ),
        migrations.AddIndex(
            "room",
            models.Index(fields=["palace"], condition=Q(slot=None), name="room_not_placed"),
        ),
        migrations.RunSQL(LEAVE, STAY),
    ]
