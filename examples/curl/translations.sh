#!/bin/sh
# OpenAI translations of the sound of a text. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
url="${SLUICE_URL:-http://localhost:8080}/v1/audio"
curl --no-progress-meter --fail "$url/speech" \
  -H "Authorization: Bearer $SLUICE_KEY" \
  -H 'content-type: application/json' \
  -d '{ "model": "tts-1", "voice": "alloy", "input": "Guten Morgen." }' |
  curl --no-progress-meter --fail-with-body "$url/translations" \
    -H "Authorization: Bearer $SLUICE_KEY" \
    -F 'file=@-;filename=morgen.mp3;type=audio/mpeg' -F model=whisper-1
echo
