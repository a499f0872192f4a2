"""What the browser tests import: written for them, in the plain format."""

from __future__ import annotations


def _conversation(key, title, day, *texts):
    return {
        "id": key,
        "title": title,
        "messages": [
            {
                "role": "assistant" if number % 2 else "user",
                "text": text,
                "said_at": f"2025-{day}T19:{number:02}:00Z",
            }
            for number, text in enumerate(texts)
        ],
    }


CONVERSATIONS = [
    _conversation(
        "efoil",
        "Wiring the efoil",
        "02-11",
        "I tried a 12-AWG silicone wire from the battery to the controller and it overheated.",
        "12 AWG is too thin for 60 A. Use 8 AWG and keep the run short.",
        "8 AWG is ordered. Derek lends me his crimping pliers on Saturday.",
        "Good. Crimp the ends rather than soldering them: solder cracks where things shake.",
    ),
    _conversation(
        "bread",
        "A sourdough that does not rise",
        "03-16",
        "My sourdough starter hardly moves. The kitchen has 18 degrees.",
        "Feed it twice a day for three days and swap a fifth of the wheat for rye.",
        "Rye did it! The jar doubled in five hours.",
        "Then mix in the evening and let the dough rise overnight.",
    ),
    _conversation(
        "garden",
        "What to sow in April",
        "04-05",
        "The garden is free of snow. What can I sow while there is still night frost?",
        "Broad beans, peas and spinach do not mind frost. Keep tomatoes indoors until June.",
    ),
]
