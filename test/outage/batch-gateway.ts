/** A gateway whose upstreams run batches, as a program of its own, for tests of its whole life. */
import type { Test } from 'tap'
import { run, until, type Program } from '../process/program.js'

/** The file of a gateway whose upstreams are `BatchVendors`. */
export function gatewayFile(origin: string, store: string, to: string): string {
  const price = '{ input: 5, output: 30, service_tiers: { batch: 0.5 } }'
  const upstream = (dialect: string, model: string, more = '') =>
    `{ dialect: ${dialect}, base_url: ${origin}/v1, api_key: sk-test, prices: { ${model}: ${price} }${more} }`
  return `server: { host: 127.0.0.1, port: 0, ops_port: 0, workers: 2 }
store: ${store}
escrow: { key: 0Zk9xQ2vLw8RmT5yBn7CdF4gHj6Kp3Sa }
files: { to: ${to} }
batches: { poll_seconds: 0.2, queue: { concurrency: 2 } }
upstreams:
  openai: ${upstream('openai-chat', 'gpt-m')}
  anthropic: ${upstream('anthropic', 'claude-m')}
  local: ${upstream('openai-chat', 'queue-m', ', operations: { batch: queue }')}
routes:
  - { model: gpt-m, upstream: openai }
  - { model: claude-m, upstream: anthropic }
  - { model: queue-m, upstream: local }
`
}

/** Starts the program; resolves once it serves. */
export async function started(t: Test, file: string): Promise<{ program: Program; baseURL: string }> {
  const program = run(t, ['serve', '--config', file])
  await until(() => program.out().includes('"sluice serves"'), 60_000)
  const port = Number(program.lines().find(({ msg }) => msg === 'sluice serves')?.['port'])
  return { program, baseURL: `http://127.0.0.1:${port}/v1` }
}
