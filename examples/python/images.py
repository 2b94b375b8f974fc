# Draws a picture and prints its size. SLUICE_URL and SLUICE_KEY as in the other examples.
# Needs: pip install openai
import base64
import os

from openai import OpenAI

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = OpenAI(base_url=url + "/v1", api_key=os.environ["SLUICE_KEY"])

reply = client.images.generate(model="gpt-image-2", prompt="three rivers from above", size="1024x1024")
print(len(base64.b64decode(reply.data[0].b64_json)), "bytes")
