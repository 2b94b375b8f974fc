# Prints what a model replied. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
# Needs: pip install google-genai
import os

from google import genai
from google.genai import types

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = genai.Client(
    api_key=os.environ["SLUICE_KEY"],
    http_options=types.HttpOptions(base_url=url),
)
print(client.models.generate_content(model="gpt-5.4", contents="Name three rivers.").text)
