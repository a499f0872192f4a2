"""What knows a language: plain values in, plain values out; no Django, no database."""
