/**
 * A small good configuration and the ways to load a changed one, for the tests of this folder.
 */
import { loadConfigText, type Env, type LoadResult } from '../../src/config/load.js'
import { formatProblem } from '../../src/config/problem.js'

/** The shortest good catalogue. */
export const MODELS = `as_of: 2026-11-20
models:
  - { id: gpt-5.5, family: openai, variants: [gpt-5.5-2026-04-23] }
`

/** The shortest good configuration. */
export const GOOD = `upstreams:
  openai:
    dialect: openai
    base_url: https://api.openai.com/v1
    api_key: \${KEY}
routes:
  - { prefix: gpt-, upstream: openai }
`

/** Loads a text as `/etc/sluice/gateway.yaml`, beside the catalogue and other files. */
export function loadText(
  text: string,
  env: Env = { KEY: 'secret' },
  files: Record<string, string | null> = {},
): LoadResult {
  const path = '/etc/sluice/gateway.yaml'
  return loadConfigText({ path, text, files: { '/etc/sluice/models.yaml': MODELS, ...files } }, env)
}

/** What `sluice check` would print of a text; empty for a good one. */
export function problemsOf(
  text: string,
  env?: Env,
  files?: Record<string, string | null>,
): string[] {
  const loaded = loadText(text, env, files)
  return loaded.ok ? [] : loaded.errors.map((problem) => formatProblem(problem))
}

/** The good configuration with one text replaced; throws where the text is not there. */
export function changed(from: string, to: string): string {
  if (!GOOD.includes(from)) throw new Error(`the sample has no '${from}'`)
  return GOOD.replace(from, () => to)
}
