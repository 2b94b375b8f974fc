# Makes speech of a German text, and prints it in English. SLUICE_URL and SLUICE_KEY as in the other examples.
# Needs: pip install openai
import os

from openai import OpenAI

url = os.environ.get("SLUICE_URL", "http://localhost:8080")
client = OpenAI(base_url=url + "/v1", api_key=os.environ["SLUICE_KEY"])

sound = client.audio.speech.create(model="tts-1", voice="alloy", input="Guten Morgen.").read()
reply = client.audio.translations.create(model="whisper-1", file=("morgen.mp3", sound, "audio/mpeg"))
print(reply.text)
