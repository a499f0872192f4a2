"""Chat with memory through LangChain, streamed.

    python langchain_chat.py "I just moved to Lisbon."
    python langchain_chat.py "Where do I live?"    # half a minute later, when that is filed

Needs: pip install langchain-openai; a running Loci and LOCI_API_KEY.
"""

import os
import sys

from langchain_openai import ChatOpenAI

model = ChatOpenAI(
    base_url=os.environ.get("LOCI_URL", "http://localhost:8000") + "/v1",
    api_key=os.environ["LOCI_API_KEY"],
    model="loci",
)
for chunk in model.stream(sys.argv[1]):
    print(chunk.text, end="")
print()
