"""The page that starts a dream, and the settings of dreams."""
