#!/bin/sh
# OpenAI chat completions, streamed, with a model of Anthropic. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
curl --no-progress-meter --fail-with-body "${SLUICE_URL:-http://localhost:8080}/v1/chat/completions" \
  -H "Authorization: Bearer $SLUICE_KEY" \
  -H 'content-type: application/json' \
  -d '{
    "model": "claude-sonnet-5-5",
    "messages": [{ "role": "user", "content": "Name three rivers." }],
    "stream": true
  }'
