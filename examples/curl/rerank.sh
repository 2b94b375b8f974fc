#!/bin/sh
# Ranks documents in Cohere's form. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
curl --no-progress-meter --fail-with-body "${SLUICE_URL:-http://localhost:8080}/v2/rerank" \
  -H "Authorization: Bearer $SLUICE_KEY" \
  -H 'content-type: application/json' \
  -d '{ "model": "rerank-v3.5", "query": "Which rivers has Italy?", "documents": ["Rome is in Italy.", "The Po is one of the rivers of Italy."] }'
echo
