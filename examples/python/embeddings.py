# Prints the size of two embeddings. SLUICE_URL and SLUICE_KEY as in the other examples.
# Needs: pip install openai
import os

from openai import OpenAI

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = OpenAI(base_url=url + "/v1", api_key=os.environ["SLUICE_KEY"])

reply = client.embeddings.create(model="gemini-embedding-001", input=["a river", "a stream"])
for item in reply.data:
    print(item.index, len(item.embedding))
