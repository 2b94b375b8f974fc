#!/bin/sh
# OpenAI embeddings, with a model of Google. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
curl --no-progress-meter --fail-with-body "${SLUICE_URL:-http://localhost:8080}/v1/embeddings" \
  -H "Authorization: Bearer $SLUICE_KEY" \
  -H 'content-type: application/json' \
  -d '{ "model": "gemini-embedding-001", "input": ["a river", "a stream"] }'
echo
