/** Goal: the program of a client is found by the start of its user agent, in a closed set of names. */
import t from 'tap'
import { PROGRAM_NAMES, programOf } from '../../src/http/client-program.js'

const CASES: Readonly<Record<string, string>> = {
  'OpenAI/Python 2.1.0': 'openai-sdk',
  'AsyncOpenAI/Python 2.1.0': 'openai-sdk',
  'OpenAI/JS 6.1.0': 'openai-sdk',
  'Anthropic/JS 0.60': 'anthropic-sdk',
  'AsyncAnthropic/Python 0.60': 'anthropic-sdk',
  'google-genai-sdk/1.30 gl-python/3.12': 'google-sdk',
  'ai/6.0 ai-sdk/openai/3.0': 'vercel-ai',
  'ai-sdk/openai-compatible/2.0': 'vercel-ai',
  'langchainjs-openai/1.0': 'langchain',
  'claude-cli/2.1.332 (external, cli)': 'claude-code',
  'claude-code/2.1.332': 'claude-code',
  'codex_exec/0.171.0 (Debian)': 'codex',
  'codex_cli_rs/0.171.0': 'codex',
  'codex-tui/0.171.0': 'codex',
  'codex_vscode/0.171.0': 'codex',
  'GeminiCLI/0.12/gemini': 'gemini-cli',
  'opencode/1.0': 'opencode',
  'ls/JS 1.0': 'continue',
  'QwenCode/0.2': 'qwen-code',
  'Python/3.11 aiohttp/3.12': 'open-webui',
  'Zed/0.210': 'zed',
  'Cursor/1.0': 'other',
  'Go-http-client/1.1': 'other',
  'Python/3.11 requests': 'other',
  'openai/python': 'other',
  '': 'none',
}

void t.test('programs', (t) => {
  for (const [userAgent, program] of Object.entries(CASES)) t.equal(programOf(userAgent), program, userAgent)
  t.equal(programOf(undefined), 'none')
  t.ok(Object.values(CASES).every((program) => PROGRAM_NAMES.includes(program)))
  t.end()
})
