"""An agent of pydantic-ai that remembers: its model is Loci.

    python pydantic_ai_agent.py "I just moved to Lisbon."
    python pydantic_ai_agent.py "Where do I live?"    # half a minute later, when that is filed

Needs: pip install "pydantic-ai-slim[openai]"; a running Loci and LOCI_API_KEY.
"""

import os
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = OpenAIProvider(
    base_url=os.environ.get("LOCI_URL", "http://localhost:8000") + "/v1",
    api_key=os.environ["LOCI_API_KEY"],
)
agent = Agent(OpenAIResponsesModel("loci", provider=provider), instructions="Be brief.")

print(agent.run_sync(sys.argv[1]).output)
