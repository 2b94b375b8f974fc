/** A minimal valid configuration, and functions that load a changed one. */
import { loadConfigText, type Env, type LoadResult } from '../../src/config/load-config.js'
import { formatProblem } from '../../src/config/config-problem.js'

/** A minimal valid catalogue. */
export const MODELS = `as_of: 2026-11-20
models:
  - { id: gpt-5.5, family: openai, variants: [gpt-5.5-2026-04-23] }
`

/** A minimal valid configuration. */
export const GOOD = `upstreams:
  openai:
    dialect: openai
    base_url: https://api.openai.com/v1
    api_key: \${KEY}
routes:
  - { prefix: gpt-, upstream: openai }
`

/** Loads a text as `/etc/sluice/gateway.yaml`, with the catalogue and other files. */
export function loadText(
  text: string,
  env: Env = { KEY: 'secret' },
  files: Record<string, string | null> = {},
): LoadResult {
  const path = '/etc/sluice/gateway.yaml'
  return loadConfigText({ path, text, files: { '/etc/sluice/models.yaml': MODELS, ...files } }, env)
}

/** The lines that `sluice check` prints for a text; empty if it is valid. */
export function problemsOf(text: string, env?: Env, files?: Record<string, string | null>): string[] {
  const loaded = loadText(text, env, files)
  return loaded.ok ? [] : loaded.errors.map((problem) => formatProblem(problem))
}

/** Returns the valid configuration with one text replaced. Throws if it does not contain the text. */
export function changed(from: string, to: string): string {
  if (!GOOD.includes(from)) throw new Error(`the sample has no '${from}'`)
  return GOOD.replace(from, () => to)
}
