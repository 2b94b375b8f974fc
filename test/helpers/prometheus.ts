/**
 * Finds and runs a real Prometheus (Debian's package `prometheus`) for a test.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'

const PROGRAM = '/usr/bin/prometheus'

/** The reason to skip a test if the program is missing, otherwise false. In CI it is required. */
export function prometheusMissing(): string | false {
  if (existsSync(PROGRAM)) return false
  const message = `${PROGRAM} is missing: apt-get install -y prometheus`
  if (process.env['CI'] === 'true') throw new Error(message)
  process.stderr.write(`\nSKIPPED, NOT PASSED: ${message}\n\n`)
  return message
}

/** A running Prometheus. */
export interface Prometheus {
  readonly origin: string
  /** The samples of an instant query; throws Prometheus's error message if it is refused. */
  query(expression: string): Promise<unknown[]>
  /** The trace ids of the exemplars that it has stored for a metric. */
  traceIds(metric: string): Promise<string[]>
  /** The rules that it has loaded, each with its health and last error. */
  rules(): Promise<{ name: string; health: string; lastError?: string }[]>
}

/** Starts Prometheus on a free port with a temporary store; it scrapes the port once a second. */
export async function startPrometheus(
  t: Test,
  options: { scrapes: number; ruleFiles: string[] },
): Promise<Prometheus> {
  // Each call of `testdir` empties the folder.
  if (!existsSync(t.testdirName)) t.testdir()
  const folder = mkdtempSync(join(t.testdirName, 'prometheus-'))
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: options.ruleFiles,
    scrape_configs: [{ job_name: 'sluice', static_configs: [{ targets: [`127.0.0.1:${options.scrapes}`] }] }],
  }
  // JSON is valid YAML.
  writeFileSync(join(folder, 'prometheus.yaml'), JSON.stringify(config))
  const child = spawn(
    PROGRAM,
    [
      `--config.file=${join(folder, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      '--web.listen-address=127.0.0.1:0',
      '--enable-feature=exemplar-storage',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  t.teardown(async () => {
    if (child.exitCode === null) {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
  })
  const port = await portFrom(child.stderr, once(child, 'exit'))
  const origin = `http://127.0.0.1:${port}`
  await untilReady(origin)
  const ask = async (path: string): Promise<unknown> => {
    const response = await fetch(`${origin}/api/v1/${path}`)
    const answer: unknown = await response.json()
    if (isSuccess(answer)) return answer.data
    throw new Error(JSON.stringify(answer))
  }
  return {
    origin,
    query: async (expression) => {
      const data = await ask(`query?query=${encodeURIComponent(expression)}`)
      if (typeof data !== 'object' || data === null || !('result' in data)) throw new Error('odd')
      const result: unknown = data.result
      return Array.isArray(result) ? (result as unknown[]) : []
    },
    traceIds: async (metric) => {
      const query = new URLSearchParams({ query: metric, start: '0', end: String(Date.now()) })
      const data = await ask(`query_exemplars?${query.toString()}`)
      return (data as { exemplars: { labels: { trace_id: string } }[] }[]).flatMap(({ exemplars }) =>
        exemplars.map(({ labels }) => labels.trace_id),
      )
    },
    rules: async () => {
      const data = await ask('rules')
      return (data as { groups: { rules: { name: string; health: string }[] }[] }).groups.flatMap(
        (group) => group.rules,
      )
    },
  }
}

/** Prometheus listens before it has read its store, and replies to queries with 503 until then. */
async function untilReady(origin: string): Promise<void> {
  const giveUpAt = Date.now() + 120_000
  while (Date.now() < giveUpAt) {
    const response = await fetch(`${origin}/-/ready`).catch(() => null)
    await response?.arrayBuffer()
    if (response?.ok === true) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('Prometheus was not ready within 120 s')
}

function isSuccess(answer: unknown): answer is { status: 'success'; data: unknown } {
  return (
    typeof answer === 'object' &&
    answer !== null &&
    'status' in answer &&
    answer.status === 'success' &&
    'data' in answer
  )
}

/** The port that the log names once it is listening; throws with the log if it exits first. */
async function portFrom(stderr: NodeJS.ReadableStream, exited: Promise<unknown>): Promise<number> {
  let log = ''
  const listening = new Promise<number>((resolve) => {
    stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString()
      const found = /Listening on" address=127\.0\.0\.1:(\d+)/.exec(log)
      if (found !== null) resolve(Number(found[1]))
    })
  })
  const port = await Promise.race([listening, exited])
  if (typeof port === 'number') return port
  throw new Error(`Prometheus ended: ${log}`)
}
