#!/bin/sh
# OpenAI pictures. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
curl --no-progress-meter --fail-with-body "${SLUICE_URL:-http://localhost:8080}/v1/images/generations" \
  -H "Authorization: Bearer $SLUICE_KEY" \
  -H 'content-type: application/json' \
  -d '{ "model": "gpt-image-2", "prompt": "three rivers from above", "size": "1024x1024" }'
echo
