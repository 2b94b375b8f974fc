/**
 * The scene of the upgrade tests: the file of a gateway, and what `record.ts` did with an earlier release and
 * expects of every later one.
 */
import { join } from 'node:path'
import * as z from 'zod'
import { packageFile } from '../../../src/config/package-file.js'

/** The folder with the recordings: for each release its stores and what it reported about them. */
export const RELEASES = packageFile('test/store/upgrade/releases')

export const ENGINES = ['sqlite', 'redis'] as const
export type Engine = (typeof ENGINES)[number]

export const EMAIL = 'upgrade@example.com'
export const PASSWORD = 'correct horse battery staple'
/** A budget of a month that one reply of `COSTLY` uses up. */
export const USD_PER_MONTH = '0.006'
export const COSTLY = { content: 'Say much. [[words: 900]]', max_tokens: 1_000 }

/** What a command prints with `--json`. */
export const Rows = z.array(z.record(z.string(), z.unknown()))

/** What an earlier release reported about its store. */
export const Expected = z.strictObject({
  /** The secrets of its keys. */
  keys: z.strictObject({
    /** Without limits. */
    web: z.string(),
    /** Its budget of the month is used up. */
    spent: z.string(),
    revoked: z.string(),
    /** With one concurrent request, which was running when the gateway was killed. */
    busy: z.string(),
  }),
  /** The lines of `usage export`. */
  entries: Rows,
  /** The lines of `usage summary --by key --json`. */
  summary: Rows,
})
export type Expected = z.infer<typeof Expected>

/** The files of a recording. */
export function recordingOf(release: string, engine: Engine) {
  const folder = join(RELEASES, release)
  const dump = engine === 'sqlite' ? 'sqlite.sql' : 'redis.jsonl'
  return { folder, dump: join(folder, dump), expected: join(folder, `${engine}.json`) }
}

/** The gateway's file. What it keeps does not expire: a recording is read for years. */
export function configText(store: string, baseUrl: string): string {
  return `server: { host: 127.0.0.1, port: 0, ops_port: 0, workers: 1, drain_ms: 1000 }
store: ${store}
ledger: { keep_days: 3650, hours_days: 3650, days_days: 36500 }
upstreams:
  openai: { dialect: openai-chat, base_url: ${baseUrl}, api_key: emulated }
routes:
  - { prefix: gpt-, upstream: openai }
models: models.yaml
plans:
  starter: { price_usd: 20, max_keys: 5 }
  pro: { price_usd: 50, max_keys: 20 }
  max: { price_usd: 100, max_keys: unlimited }
`
}

/** A chat on a new connection. */
export function chat(port: number, secret: string, turn: object, signal?: AbortSignal) {
  const { content = 'Hi.', ...fields } = turn as { content?: string }
  return fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      connection: 'close',
    },
    body: JSON.stringify({
      model: 'gpt-5.4-mini',
      messages: [{ role: 'user', content }],
      ...fields,
    }),
    ...(signal && { signal }),
  })
}
