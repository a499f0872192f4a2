"""Episodes: what each conversation came to, written after mining, stored by callers, searched."""
