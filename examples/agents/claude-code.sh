# Settings of Claude Code: source this file, then run `claude`.
# SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
export ANTHROPIC_BASE_URL="${SLUICE_URL:-http://localhost:8080}"
export ANTHROPIC_AUTH_TOKEN="$SLUICE_KEY"
# Any model that the gateway serves, of any provider.
export ANTHROPIC_MODEL="claude-sonnet-5-5"
export ANTHROPIC_DEFAULT_HAIKU_MODEL="gpt-5.4-mini"
