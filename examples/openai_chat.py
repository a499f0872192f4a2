"""Chat with memory through OpenAI's own client.

    python openai_chat.py "I just moved to Lisbon."
    python openai_chat.py "Where do I live?"

Each time is a conversation of its own, which has nothing of the first one but the memory: half a
minute later, when that is filed. Needs: pip install openai; a running Loci and LOCI_API_KEY.
"""

import os
import sys

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("LOCI_URL", "http://localhost:8000") + "/v1",
    api_key=os.environ["LOCI_API_KEY"],
)

reply = client.chat.completions.create(
    model="loci",
    user="ada",  # Whose palace it is: your own id of the person who asks.
    messages=[{"role": "user", "content": sys.argv[1]}],
)
print(reply.choices[0].message.content)
