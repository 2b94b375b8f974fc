# Runs a batch in Anthropic's form, with a model of OpenAI, and prints its results. SLUICE_URL is the gateway's
# address without a path; SLUICE_KEY is an API key. The gateway's configuration must have `files`.
# Needs: pip install anthropic
import os
import time

from anthropic import Anthropic

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = Anthropic(base_url=url, api_key=os.environ["SLUICE_KEY"])

requests = [
    {
        "custom_id": f"line-{at}",
        "params": {
            "model": "gpt-5.4",
            "max_tokens": 500,
            "messages": [{"role": "user", "content": prompt}],
        },
    }
    for at, prompt in enumerate(["Name three rivers.", "Name three lakes."])
]
batch = client.messages.batches.create(requests=requests)
while client.messages.batches.retrieve(batch.id).processing_status != "ended":
    time.sleep(1)
for line in client.messages.batches.results(batch.id):
    print(line.custom_id, line.result)
