"""Uses the vendors' Python clients at a gateway: one line of JSON on standard input is one call, one line of
JSON on standard output its result, or the error's text. SLUICE_URL is the gateway's address."""

import base64
import functools
import importlib
import io
import json
import os
import sys

URL = os.environ["SLUICE_URL"]
KEY = os.environ["SLUICE_KEY"]
DOCUMENTS = ["The Elbe is a river.", "The Nile is the longest river.", "Bread is baked."]
WAV = base64.b64decode(os.environ["SLUICE_WAV"])


@functools.cache
def openai():
    return importlib.import_module("openai").OpenAI(api_key=KEY, base_url=URL + "/v1", max_retries=0)


@functools.cache
def groq():
    return importlib.import_module("groq").Groq(api_key=KEY, base_url=URL, max_retries=0)


@functools.cache
def mistral():
    try:
        client = importlib.import_module("mistralai").Mistral
    except AttributeError:
        client = importlib.import_module("mistralai.client").Mistral
    return client(api_key=KEY, server_url=URL)


@functools.cache
def cohere(name):
    return getattr(importlib.import_module("cohere"), name)(api_key=KEY, base_url=URL)


@functools.cache
def google():
    genai = importlib.import_module("google.genai")
    return genai.Client(api_key=KEY, http_options={"base_url": URL})


def ranks(reply):
    return [result.index for result in reply.results]


def rank(name):
    return lambda model: ranks(cohere(name).rerank(model=model, query="Which river?", documents=DOCUMENTS))


def sound(client):
    return lambda model: client().audio.transcriptions.create(model=model, file=("a.wav", WAV)).text


def english(client):
    return lambda model: client().audio.translations.create(model=model, file=("a.wav", WAV)).text


def speech(client, form):
    def call(model):
        reply = client().audio.speech.create(model=model, voice="alloy", input="Hi.", response_format=form)
        return base64.b64encode(reply.read()).decode()

    return call


def picture(edits):
    def call(model):
        images = openai().images
        reply = (
            images.edit(model=model, prompt="a hat", image=("a.png", io.BytesIO(b"png"), "image/png"))
            if edits
            else images.generate(model=model, prompt="a cat")
        )
        return reply.data[0].b64_json

    return call


def google_part(model, contents, **config):
    client = google()
    reply = client.models.generate_content(model=model, contents=contents, config=config or None)
    return reply.candidates[0].content.parts[0]


def google_sound(model):
    data = google_part(model, "Hi.", response_modalities=["AUDIO"]).inline_data.data
    return base64.b64encode(data).decode()


def google_words(model):
    types = importlib.import_module("google.genai.types")
    part = types.Part.from_bytes(data=WAV, mime_type="audio/wav")
    return google_part(model, [part], audio_transcription_config={}).text


def mistral_verdict(model):
    return mistral().classifiers.moderate(model=model, inputs=["A text."]).results[0].categories["violence"]


CALLS = {
    "cohere ClientV2 rerank": rank("ClientV2"),
    "cohere Client rerank": rank("Client"),
    "openai moderations": lambda model: openai().moderations.create(model=model, input="A text.").results[0].flagged,
    "mistralai moderations": mistral_verdict,
    "openai images": picture(False),
    "openai image_edits": picture(True),
    "openai transcriptions": sound(openai),
    "groq transcriptions": sound(groq),
    "google-genai transcriptions": google_words,
    "openai translations": english(openai),
    "groq translations": english(groq),
    "openai speech": speech(openai, "pcm"),
    "groq speech": speech(groq, "wav"),
    "google-genai speech": google_sound,
}

for line in sys.stdin:
    call = json.loads(line)
    try:
        result = {"result": CALLS[call["client"]](call["model"])}
    except Exception as error:  # noqa: BLE001
        result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(result), flush=True)
