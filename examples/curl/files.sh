#!/bin/sh
# Uploads a text to Google's files, reads its record and deletes it. SLUICE_URL is the gateway's address without a path;
# SLUICE_KEY is an API key. The gateway's configuration must have `files`.
set -e
url="${SLUICE_URL:-http://localhost:8080}"

call() {
  curl --no-progress-meter --fail-with-body -H "x-goog-api-key: $SLUICE_KEY" "$@"
}

upload=$(call -o /dev/null -D - "$url/upload/v1beta/files" -H 'content-type: application/json' \
  -H 'x-goog-upload-protocol: resumable' -H 'x-goog-upload-command: start' \
  -H 'x-goog-upload-header-content-type: text/plain' -d '{"file":{"displayName":"rivers"}}' |
  tr -d '\r' | sed -n 's/^x-goog-upload-url: //ip')
name=$(call "$upload" -H 'x-goog-upload-command: upload, finalize' -H 'x-goog-upload-offset: 0' \
  -H 'content-type: text/plain' -d 'Po, Tiber, Arno' | sed -n 's/.*"name": *"\(files\/[^"]*\)".*/\1/p')
call "$url/v1beta/$name"
call -X DELETE "$url/v1beta/$name"
echo
