# Prints what a model replied. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
# Needs: pip install langchain-openai langchain-anthropic
import os

from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
key = os.environ["SLUICE_KEY"]

openai = ChatOpenAI(model="gemini-3.5-flash", base_url=url + "/v1", api_key=key)
print(openai.invoke("Name three rivers.").content)

anthropic = ChatAnthropic(model="gpt-5.4", base_url=url, api_key=key, max_tokens=500)
print(anthropic.invoke("Name three rivers.").content)
