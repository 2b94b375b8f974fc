#!/bin/sh
# Anthropic Messages, with a model of OpenAI. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
curl --no-progress-meter --fail-with-body "${SLUICE_URL:-http://localhost:8080}/v1/messages" \
  -H "x-api-key: $SLUICE_KEY" \
  -H 'anthropic-version: 2023-06-01' \
  -H 'content-type: application/json' \
  -d '{
    "model": "gpt-5.4",
    "max_tokens": 500,
    "messages": [{ "role": "user", "content": "Name three rivers." }]
  }'
echo
