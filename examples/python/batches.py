# Runs a batch of two lines and prints its results. SLUICE_URL is the gateway's address without a path; SLUICE_KEY
# is an API key. The gateway's configuration must have `files`.
# Needs: pip install openai
import json
import os
import time

from openai import OpenAI

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = OpenAI(base_url=f"{url}/v1", api_key=os.environ["SLUICE_KEY"])


def line(at, prompt):
    messages = [{"role": "user", "content": prompt}]
    body = {"model": "gpt-5.4", "messages": messages, "max_completion_tokens": 500}
    return {"custom_id": f"line-{at}", "method": "POST", "url": "/v1/chat/completions", "body": body}


prompts = ["Name three rivers.", "Name three lakes."]
text = "".join(json.dumps(line(at, prompt)) + "\n" for at, prompt in enumerate(prompts))
file = client.files.create(file=("lines.jsonl", text.encode()), purpose="batch")
batch = client.batches.create(
    input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
)
while batch.status not in ("completed", "failed", "expired", "cancelled"):
    time.sleep(1)
    batch = client.batches.retrieve(batch.id)
for result in client.files.content(batch.output_file_id).text.splitlines():
    print(result)
