# Makes speech of a text and prints its size. SLUICE_URL and SLUICE_KEY as in the other examples.
# Needs: pip install openai
import os

from openai import OpenAI

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = OpenAI(base_url=url + "/v1", api_key=os.environ["SLUICE_KEY"])

sound = client.audio.speech.create(model="tts-1", voice="alloy", input="Good morning.")
print(len(sound.read()), "bytes")
