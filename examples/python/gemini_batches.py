# Runs a batch in Google's form and prints its replies. SLUICE_URL is the gateway's address without a path;
# SLUICE_KEY is an API key. The gateway's configuration must have `files`.
# Needs: pip install google-genai
import os
import time

from google.genai import Client

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = Client(api_key=os.environ["SLUICE_KEY"], http_options={"base_url": url})

prompts = ["Name three rivers.", "Name three lakes."]
requests = [{"contents": [{"role": "user", "parts": [{"text": prompt}]}]} for prompt in prompts]
batch = client.batches.create(model="gemini-3.5-flash", src=requests)
while batch.state.name in ("JOB_STATE_PENDING", "JOB_STATE_RUNNING"):
    time.sleep(1)
    batch = client.batches.get(name=batch.name)
for line in batch.dest.inlined_responses:
    print(line.error or line.response.text)
