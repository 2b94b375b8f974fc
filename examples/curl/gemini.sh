#!/bin/sh
# Gemini generateContent, with a model of OpenAI. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
curl --no-progress-meter --fail-with-body "${SLUICE_URL:-http://localhost:8080}/v1beta/models/gpt-5.4:generateContent" \
  -H "x-goog-api-key: $SLUICE_KEY" \
  -H 'content-type: application/json' \
  -d '{ "contents": [{ "role": "user", "parts": [{ "text": "Name three rivers." }] }] }'
echo
