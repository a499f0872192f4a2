"""mem0's own client, with Loci as its server.

Needs: pip install mem0ai; a running Loci and LOCI_API_KEY.
"""

import os

from mem0 import MemoryClient

client = MemoryClient(
    host=os.environ.get("LOCI_URL", "http://localhost:8000"), api_key=os.environ["LOCI_API_KEY"]
)
client.add([{"role": "user", "content": "I just moved to Lisbon."}], user_id="ada")
for memory in client.search("Where does she live?", filters={"user_id": "ada"})["results"]:
    print(memory["memory"], round(memory["score"], 2))
