"""Work that crosses palaces, by name. Nothing else runs as the role that sees all rows."""

from __future__ import annotations

SWEEPS: dict[str, str] = {
    "what waits": "Periodic tasks look in every palace for what a killed worker left.",
    "whose it is": "A task has the key of a row; which palace it is of is looked up.",
    "vectors": "Embedding what has no vector, and changing to another model, palace by palace.",
    "trash": "Which palaces have something in the trash that is due to be purged.",
    "dreams": "Which palaces are to dream tonight.",
    "webhooks": "Sending what is due, to whatever webhook of whomever.",
    "deliveries": "Forgetting old deliveries of webhooks.",
    "keys of Redis": "Which of the palaces that Redis has keys of are no more.",
    "spools": "Which copies of imported files no import needs any more.",
    "answers": "Forgetting what was answered to programs a day ago.",
    "audit": "Forgetting old lines of what programs changed.",
    "integrity": "`manage.py audit` reads palaces one after the other, and what is of none.",
    "sessions": "Forgetting sessions that have ended.",
    "admin": "The admin site, for operators: accounts, keys, counts; no words of a memory.",
}
