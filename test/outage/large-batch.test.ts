/**
 * Goal: a batch of 50,000 lines takes at most 48 MiB more than one of 1,000, and is charged exactly.
 * Method: the whole program, whose memory is read while it checks, sends, reads and settles the batch.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import t from 'tap'
import { batchOf, ended, resultsIn, textOf } from '../gateway/batches/batch-stage.js'
import { IS_LONG } from '../helpers/long-suite.js'
import { rowsOf } from '../helpers/ledger.js'
import { makeKey } from '../process/program.js'
import { gatewayFile, started } from './batch-gateway.js'
import { BatchVendors, LINE_NANO_USD } from './batch-vendors.js'

const LINES = 50_000
/** Beside what a small batch takes: ids, and places of results. */
const MOST_MORE_BYTES = 48 * 1024 * 1024
t.setTimeout(590_000)

function residentBytes(pid: number): number {
  const [, kb = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kb) * 1024
}

void t.test('50,000 lines', { skip: IS_LONG ? false : 'long suite' }, async (t) => {
  const vendors = await new BatchVendors().start(t)
  vendors.release()
  const folder = t.testdir()
  mkdirSync(folder, { recursive: true })
  const configFile = join(folder, 'gateway.yaml')
  copyFileSync('config/models.yaml', join(folder, 'models.yaml'))
  const file = gatewayFile(vendors.origin, 'sqlite:./data/sluice.db', './files')
  writeFileSync(configFile, file.replace('workers: 2', 'workers: 1'))
  const apiKey = await makeKey(`sqlite:${join(folder, 'data', 'sluice.db')}`, {
    nanoUsdPerDay: 100_000_000_000_000,
  })
  const { program, baseURL } = await started(t, configFile)
  const client = new OpenAI({ apiKey, baseURL, maxRetries: 0, timeout: 500_000 })
  const [worker = program.pid] = program.workers()
  const text = (lines: number): string => {
    const line = { model: 'gpt-m', max_completion_tokens: 50 }
    return textOf(
      Array.from({ length: lines }, (_, at) => ({
        ...line,
        messages: [{ role: 'user', content: `line ${at}` }],
      })),
    )
  }
  const most = async (lines: number) => {
    let bytes = 0
    const watching = setInterval(() => (bytes = Math.max(bytes, residentBytes(worker))), 20)
    const beganMs = performance.now()
    const { id } = await batchOf(client, text(lines))
    const batch = await ended(client, id)
    clearInterval(watching)
    return { batch, bytes, ms: performance.now() - beganMs }
  }
  const small = await most(1_000)
  const large = await most(LINES)
  const mib = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`
  t.comment(`${mib(small.bytes)} with 1,000 lines; ${mib(large.bytes)} with ${LINES} in ${large.ms} ms`)
  t.ok(large.bytes - small.bytes < MOST_MORE_BYTES, `${mib(large.bytes - small.bytes)} more`)
  t.match(large.batch, { status: 'completed', request_counts: { completed: LINES, failed: 0 } })
  const results = await resultsIn(client, large.batch.output_file_id)
  t.equal(results.length, LINES)
  t.ok(results.every(({ custom_id }, at) => custom_id === `c${at}`))
  const own = (await rowsOf({ configFile })).filter(({ batch }) => batch === large.batch.id)
  t.match(own, [{ costNanoUsd: LINES * LINE_NANO_USD, outcome: 'ok', source: 'reported' }])
})
