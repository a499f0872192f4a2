"""An agent of openai-agents that remembers: its model is Loci.

    python openai_agents.py "I just moved to Lisbon."
    python openai_agents.py "How is the weather where I live?"    # half a minute later

Needs: pip install openai-agents; a running Loci with a model (Settings → Model), and LOCI_API_KEY.
"""

import asyncio
import os
import sys

from agents import Agent, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from openai import AsyncOpenAI

set_default_openai_client(
    AsyncOpenAI(
        base_url=os.environ.get("LOCI_URL", "http://localhost:8000") + "/v1",
        api_key=os.environ["LOCI_API_KEY"],
    )
)
set_tracing_disabled(True)  # Traces would go to OpenAI.


@function_tool
def weather(city: str) -> str:
    """How the weather is in a city."""
    return f"Rain in {city}."


agent = Agent(name="Companion", instructions="Be brief.", model="loci", tools=[weather])


async def main():
    run = await Runner.run(agent, sys.argv[1])
    print(run.final_output)


asyncio.run(main())
