# Prints what a model replied. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
# Needs: pip install openai
import os

from openai import OpenAI

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = OpenAI(base_url=url + "/v1", api_key=os.environ["SLUICE_KEY"])

response = client.responses.create(model="gemini-3.5-flash", input="Name three rivers.")
print(response.output_text)
