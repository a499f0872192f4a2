"""The pages of wings, rooms, closets and drawers."""
