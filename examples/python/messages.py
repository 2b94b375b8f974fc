# Prints what a model replied. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
# Needs: pip install anthropic
import os

from anthropic import Anthropic

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = Anthropic(base_url=url, api_key=os.environ["SLUICE_KEY"])

with client.messages.stream(
    model="gpt-5.4",
    max_tokens=500,
    messages=[{"role": "user", "content": "Name three rivers."}],
) as stream:
    for text in stream.text_stream:
        print(text, end="")
print()
