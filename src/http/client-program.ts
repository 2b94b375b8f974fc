/** The program of a client, by its user agent: a closed set of names for the ledger. */

/** Starts of user agents, as the programs send them, and their names; the first that fits counts. */
const PROGRAMS: readonly (readonly [start: string, program: string])[] = [
  ['OpenAI/Python', 'openai-sdk'],
  ['AsyncOpenAI/Python', 'openai-sdk'],
  ['OpenAI/JS', 'openai-sdk'],
  ['Anthropic/Python', 'anthropic-sdk'],
  ['AsyncAnthropic/Python', 'anthropic-sdk'],
  ['Anthropic/JS', 'anthropic-sdk'],
  ['google-genai-sdk/', 'google-sdk'],
  ['ai/', 'vercel-ai'],
  ['ai-sdk/', 'vercel-ai'],
  ['langchainjs-', 'langchain'],
  ['claude-cli/', 'claude-code'],
  ['claude-code/', 'claude-code'],
  ['codex_exec/', 'codex'],
  ['codex_cli_rs/', 'codex'],
  ['codex-tui/', 'codex'],
  ['codex_vscode/', 'codex'],
  ['GeminiCLI', 'gemini-cli'],
  ['opencode/', 'opencode'],
  ['ls/JS', 'continue'],
  ['QwenCode/', 'qwen-code'],
  ['Zed/', 'zed'],
]
/** Open WebUI sends the user agent of its HTTP library. */
const OPEN_WEBUI = /^Python\/3\.[\d.]{1,8} aiohttp\//

/** All names. */
export const PROGRAM_NAMES: readonly string[] = [
  ...new Set(PROGRAMS.map(([, program]) => program)),
  'open-webui',
  'other',
  'none',
]

/** By the first character: a look-up costs a few comparisons. */
const BY_CHARACTER = new Map<string, (readonly [string, string])[]>()
for (const each of PROGRAMS) {
  const [start] = each
  const known = BY_CHARACTER.get(start.charAt(0))
  if (known === undefined) BY_CHARACTER.set(start.charAt(0), [each])
  else known.push(each)
}

/** The program with this user agent; `none` without one, `other` for those that are not in the set. */
export function programOf(userAgent: string | undefined): string {
  if (userAgent === undefined || userAgent === '') return 'none'
  for (const [start, program] of BY_CHARACTER.get(userAgent.charAt(0)) ?? []) {
    if (userAgent.startsWith(start)) return program
  }
  return OPEN_WEBUI.test(userAgent) ? 'open-webui' : 'other'
}
