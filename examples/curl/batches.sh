#!/bin/sh
# Runs a batch of one line and prints its results. SLUICE_URL is the gateway's address without a path; SLUICE_KEY
# is an API key. The gateway's configuration must have `files`.
set -e
url="${SLUICE_URL:-http://localhost:8080}/v1"

call() {
  curl --no-progress-meter --fail-with-body -H "authorization: Bearer $SLUICE_KEY" "$@"
}

# The text of a member of the object on standard input.
member() {
  sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"
}

line='{"custom_id":"line-0","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-5.4","messages":[{"role":"user","content":"Name three rivers."}],"max_completion_tokens":500}}'
file=$(printf '%s\n' "$line" | call "$url/files" -F purpose=batch -F 'file=@-;filename=lines.jsonl' | member id)
batch=$(call "$url/batches" -H 'content-type: application/json' \
  -d "{\"input_file_id\":\"$file\",\"endpoint\":\"/v1/chat/completions\",\"completion_window\":\"24h\"}" | member id)
status=validating
while [ "$status" != completed ]; do
  sleep 1
  status=$(call "$url/batches/$batch" | member status)
  case $status in failed | expired | cancelled) exit 1 ;; esac
done
call "$url/files/$(call "$url/batches/$batch" | member output_file_id)/content"
