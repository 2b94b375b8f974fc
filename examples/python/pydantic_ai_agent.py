# Prints what a model replied. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
# Needs: pip install pydantic-ai
import os

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
provider = OpenAIProvider(base_url=url + "/v1", api_key=os.environ["SLUICE_KEY"])
agent = Agent(OpenAIResponsesModel("claude-sonnet-5-5", provider=provider))
print(agent.run_sync("Name three rivers.").output)
