/**
 * `sluice restart`: a rolling restart of the running gateway. It signals the primary, whose process id the ops port
 * gives, and follows the restart there.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { loadConfig } from '../config/load.js'
import { machineName } from '../process/machine.js'
import { problemLines } from './check/check.js'
import type { Command } from './command.js'
import { configPath } from './config-option.js'
import { askOps, opsUrl } from './ops-port.js'
import { processTerminal, type Terminal } from './with-store.js'

/** `sluice restart`. */
export const command: Command = {
  name: 'restart',
  summary: 'replace the workers of the running gateway, without a refused connection',
  help: `
Usage: sluice restart [--config FILE] [--json]

Starts new workers beside the running ones. When all of them are ready they accept new connections, and the
former workers finish their requests within server.drain_ms; streams that take longer get an error event.
Settings that need a restart take effect (server.port, server.workers, store, …). If a new worker cannot start,
the former ones go on. Needs server.workers of 2 or more. Run it on the gateway's machine as the gateway's
user: it sends SIGUSR2 to the primary process. The primary itself is not replaced; for a new version of
Sluice restart the service.

Options:
  --config FILE  the configuration file of the gateway; without it, the one that SLUICE_CONFIG names
  --json         print the workers as JSON

Exit status: 0 the new workers serve, 1 they do not or no gateway runs, 2 wrong use.

Example:
  sluice restart --config config/gateway.yaml
`,
  run(argv) {
    const options = { config: { type: 'string' }, json: { type: 'boolean' } } as const
    const { values } = parseArgs({ args: [...argv], options })
    const config = configPath(values.config, 'sluice restart')
    return runRestart(config, values.json === true, processTerminal)
  },
}

const POLL_MS = 100

const page = z.object({
  pid: z.int().positive(),
  machine: z.string(),
  workers: z.array(z.object({ worker: z.int(), pid: z.int().nullable(), state: z.string() })),
  restarts: z
    .object({ asked: z.int(), settled: z.int(), failure: z.string().nullable() })
    .nullable(),
})
type Page = z.output<typeof page>

async function runRestart(path: string, isJson: boolean, terminal: Terminal): Promise<number> {
  const loaded = loadConfig(path, process.env)
  if (!loaded.ok) {
    terminal.err(problemLines(loaded.errors))
    return 1
  }
  const { server } = loaded.config
  const url = opsUrl(server)
  const ask = async (): Promise<Page> => page.parse(await askOps(url, '/workers'))
  const before = await ask()
  checkSignals(before, url)
  signal(before.pid, 'SIGUSR2')
  const after = await untilSettled(ask, before)
  const failure = after.restarts?.failure ?? null
  if (failure !== null) {
    terminal.err(`sluice: The new workers cannot serve, the former ones go on: ${failure}`)
    return 1
  }
  terminal.out(isJson ? JSON.stringify(after, null, 2) : summaryOf(after, server.drainMs))
  return 0
}

/** Throws if the gateway cannot restart its workers, or if its process id means another process here. */
function checkSignals({ machine, restarts }: Page, url: string): void {
  if (machine !== machineName()) {
    throw new Error(
      `The gateway at ${url} runs on another machine or in a container; run this there`,
    )
  }
  if (restarts !== null) return
  throw new Error(
    'The gateway is one process (server.workers: 1), which cannot hand over its port; restart the service, or set server.workers to 2 or more and restart it once',
  )
}

/** Sends a signal; 0 only checks that the process is there. */
function signal(pid: number, name: 'SIGUSR2' | 0): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    const isForeign = code === 'EPERM'
    const why = isForeign ? 'belongs to another user; run this as that user' : 'has ended'
    throw new Error(`The gateway (process ${String(pid)}) ${why}`, { cause: error })
  }
}

/** Waits for a restart that began after `asked` were asked for. Throws if the gateway ends. */
async function untilSettled(ask: () => Promise<Page>, { pid, restarts }: Page): Promise<Page> {
  const asked = restarts?.asked ?? 0
  for (;;) {
    await delay(POLL_MS)
    signal(pid, 0)
    // The ops port may be on its way to another address.
    const now = await ask().catch(() => null)
    if ((now?.restarts?.settled ?? 0) > asked && now !== null) return now
  }
}

function summaryOf({ workers }: Page, drainMs: number): string {
  const leaving = workers.filter(({ state }) => state === 'draining').length
  const serving = workers.length - leaving
  const rest = `${String(leaving)} former ones finish their requests within ${String(drainMs)} ms`
  return `${String(serving)} new workers serve; ${leaving === 0 ? 'no former one is left' : rest}`
}
