# Prints whether a text may be harmful. SLUICE_URL and SLUICE_KEY as in the other examples.
# Needs: pip install openai
import os

from openai import OpenAI

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = OpenAI(base_url=url + "/v1", api_key=os.environ["SLUICE_KEY"])

reply = client.moderations.create(input="Name three rivers.")
print("flagged" if reply.results[0].flagged else "harmless")
