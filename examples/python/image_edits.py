# Changes a picture and prints the size of the new one. SLUICE_URL and SLUICE_KEY as in the other examples.
# Needs: pip install openai
import base64
import os

from openai import OpenAI

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = OpenAI(base_url=url + "/v1", api_key=os.environ["SLUICE_KEY"])

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQq50FAAIiAUaVTK0EAAAAAElFTkSuQmCC"
image = ("pixel.png", base64.b64decode(PIXEL), "image/png")
reply = client.images.edit(model="gpt-image-2", image=image, prompt="Add a river.")
print(len(base64.b64decode(reply.data[0].b64_json)), "bytes")
