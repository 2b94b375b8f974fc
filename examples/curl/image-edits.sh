#!/bin/sh
# OpenAI edits of pictures: a form. SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
pixel=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQq50FAAIiAUaVTK0EAAAAAElFTkSuQmCC
echo "$pixel" | base64 -d | curl --no-progress-meter --fail-with-body "${SLUICE_URL:-http://localhost:8080}/v1/images/edits" \
  -H "Authorization: Bearer $SLUICE_KEY" \
  -F 'image=@-;filename=pixel.png;type=image/png' -F model=gpt-image-2 -F prompt='Add a river.'
echo
