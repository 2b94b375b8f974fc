#!/bin/sh
# Runs a batch of one request in Anthropic's form and prints its results. SLUICE_URL is the gateway's address without
# a path; SLUICE_KEY is an API key. The gateway's configuration must have `files`.
set -e
url="${SLUICE_URL:-http://localhost:8080}/v1/messages/batches"

call() {
  curl --no-progress-meter --fail-with-body -H "x-api-key: $SLUICE_KEY" -H 'anthropic-version: 2023-06-01' "$@"
}

# The text of a member of the object on standard input.
member() {
  sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"
}

batch=$(call "$url" -H 'content-type: application/json' \
  -d '{"requests":[{"custom_id":"line-0","params":{"model":"gpt-5.4","max_tokens":500,"messages":[{"role":"user","content":"Name three rivers."}]}}]}' | member id)
until [ "$(call "$url/$batch" | member processing_status)" = ended ]; do sleep 1; done
call "$url/$batch/results"
