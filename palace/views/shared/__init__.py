"""What several pages use: lists in parts, days in forms, counts beside a drawer."""
