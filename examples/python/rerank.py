# Ranks documents by a question. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
# Needs: pip install cohere
import os

from cohere import ClientV2

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = ClientV2(api_key=os.environ["SLUICE_KEY"], base_url=url)

documents = ["Rome is in Italy.", "The Po is one of the rivers of Italy.", "Bread needs salt."]
reply = client.rerank(model="rerank-v3.5", query="Which rivers has Italy?", documents=documents, top_n=2)
for result in reply.results:
    print(result.relevance_score, documents[result.index])
