# Prints what a model replied. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
# Needs: pip install openai
import os

from openai import OpenAI

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = OpenAI(base_url=url + "/v1", api_key=os.environ["SLUICE_KEY"])

# The model selects the provider: gpt-…, claude-…, gemini-….
stream = client.chat.completions.create(
    model="claude-sonnet-5-5",
    messages=[{"role": "user", "content": "Name three rivers."}],
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="")
print()
