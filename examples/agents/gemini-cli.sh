# Settings of the Gemini CLI: source this file, then run `gemini --model claude-sonnet-5-5`.
# SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
export GOOGLE_GEMINI_BASE_URL="${SLUICE_URL:-http://localhost:8080}"
export GEMINI_API_KEY="$SLUICE_KEY"
