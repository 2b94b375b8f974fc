#!/bin/sh
# Runs a batch of one request in Google's form and prints it with its reply. SLUICE_URL is the gateway's address without
# a path; SLUICE_KEY is an API key. The gateway's configuration must have `files`.
set -e
url="${SLUICE_URL:-http://localhost:8080}/v1beta"

call() {
  curl --no-progress-meter --fail-with-body -H "x-goog-api-key: $SLUICE_KEY" -H 'content-type: application/json' "$@"
}

batch=$(call "$url/models/gemini-3.5-flash:batchGenerateContent" \
  -d '{"batch":{"inputConfig":{"requests":{"requests":[{"request":{"contents":[{"role":"user","parts":[{"text":"Name three rivers."}]}]}}]}}}}' |
  sed -n 's/^[^}]*"name": *"\(batches\/[^"]*\)".*/\1/p')
until call "$url/$batch" | grep -q '"done": *true'; do sleep 1; done
call "$url/$batch"
echo
