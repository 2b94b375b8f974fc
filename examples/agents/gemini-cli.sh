# Settings of the Gemini CLI: source this file, then run `gemini --model claude-sonnet-5-5`.
# SLUICE_URL is the gateway's address without a path; SLUICE_KEY is an API key.
export GOOGLE_GEMINI_BASE_URL="${SLUICE_URL:-http://localhost:8080}"
export GEMINI_API_KEY="$SLUICE_KEY"
# With a base URL, the CLI needs the kind of the key in its settings; else it stops with "Invalid auth method
# selected". If you have a settings file, add this value to it.
if [ -n "$HOME" ] && [ ! -e "$HOME/.gemini/settings.json" ]; then
  mkdir -p "$HOME/.gemini"
  echo '{ "security": { "auth": { "selectedType": "gemini-api-key" } } }' > "$HOME/.gemini/settings.json"
fi
# In a script, `gemini --skip-trust --model gpt-5.4 -p "Name three rivers."` also runs in a folder without trust.
