# Uploads a text to Anthropic, and sends Claude a question about it. SLUICE_URL is the gateway's address without a path;
# SLUICE_KEY is an API key. The gateway's configuration must have `files`.
# Needs: pip install anthropic
import os

from anthropic import Anthropic

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = Anthropic(base_url=url, api_key=os.environ["SLUICE_KEY"])

file = client.beta.files.upload(file=("rivers.txt", b"Po, Tiber, Arno", "text/plain"))
document = {"type": "document", "source": {"type": "file", "file_id": file.id}}
message = client.beta.messages.create(
    model="claude-sonnet-4-6",
    max_tokens=500,
    betas=["files-api-2025-04-14"],
    messages=[{"role": "user", "content": [document, {"type": "text", "text": "How many rivers are these?"}]}],
)
print(message.content[0].text)
client.beta.files.delete(file.id)
