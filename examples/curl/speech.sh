#!/bin/sh
# OpenAI speech: prints the size of the sound. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
curl --no-progress-meter --fail "${SLUICE_URL:-http://localhost:8080}/v1/audio/speech" \
  -H "Authorization: Bearer $SLUICE_KEY" \
  -H 'content-type: application/json' \
  -d '{ "model": "tts-1", "voice": "alloy", "input": "Good morning." }' | wc -c
