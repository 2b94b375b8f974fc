/**
 * `sluice restart`: a rolling restart of the running gateway. It signals the primary, whose process id is on
 * the ops port, and follows the restart there.
 */
import { setTimeout as delay } from 'node:timers/promises'
import * as z from 'zod'
import { opsAddressIn } from '../config/generations/history.js'
import { loadConfig } from '../config/load-config.js'
import { machineName } from '../process/process-identity.js'
import { problemLines } from './problem-lines.js'
import { configOption, declare } from './command.js'
import { findGateway, loadGeneration, requestGateway, type FoundGateway } from './running-gateway.js'
import { processTerminal, type Terminal } from './with-store.js'

/** `sluice restart`. */
export function command() {
  return declare({
    name: 'restart',
    summary: 'replace the workers of the running gateway without refusing a connection',
    description: `
Starts new workers beside the running ones. When all of them are ready they accept new connections, and the
previous workers finish their requests within server.drain_ms; longer streams get an error event.
Settings that need a restart take effect (server.port, server.workers, store, …). If a new worker cannot start,
the previous ones continue. Requires server.workers of 2 or more. Run it on the gateway's machine as the
gateway's user: it sends SIGUSR2 to the primary process. The primary itself is not replaced: for a new version
of Sluice restart the service.`,
    exitStatus: '0 the new workers serve, 1 failure or no gateway runs, 2 wrong usage.',
    example: 'sluice restart --config config/gateway.yaml',
  })
    .addOption(configOption('the configuration file of the gateway'))
    .option('--json', 'print the workers as JSON')
    .action(async ({ config, json }) => {
      process.exitCode = await runRestart(config, json === true, processTerminal)
    })
}

const POLL_MS = 100

const page = z.object({
  pid: z.int().positive(),
  machine: z.string(),
  workers: z.array(z.object({ worker: z.int(), pid: z.int().nullable(), state: z.string() })),
  restarts: z.object({ asked: z.int(), settled: z.int(), failure: z.string().nullable() }).nullable(),
})
type Page = z.output<typeof page>

async function runRestart(path: string, isJson: boolean, terminal: Terminal): Promise<number> {
  const loaded = loadConfig(path, process.env)
  const find = (): Promise<FoundGateway | null> => findGateway(loaded, process.env)
  const gateway = await find()
  if (!loaded.ok) terminal.err(problemLines(loaded.errors))
  if (gateway === null) {
    const { opsHost, opsPort } = loaded.ok ? loaded.config.server : opsAddressIn(loaded.sources, process.env)
    throw new Error(
      `No gateway runs with ${path}: nothing listens on ${opsHost}:${String(opsPort)} (server.ops_host and server.ops_port)`,
    )
  }
  if (!loaded.ok) {
    const { generation } = gateway
    terminal.err(`sluice: the new workers use generation ${String(generation)}, which is in force`)
  }
  const before = await pageOf(gateway)
  checkSignals(before, gateway.origin)
  signal(before.pid, 'SIGUSR2')
  // The restart may move the ops port.
  const after = await untilSettled(before, async () => {
    const now = await pageOf(gateway).catch(() => null)
    const moved = now === null ? await find() : null
    return moved === null ? now : pageOf(moved).catch(() => null)
  })
  const failure = after.restarts?.failure ?? null
  if (failure !== null) {
    terminal.err(`sluice: the new workers cannot serve, so the previous ones continue: ${failure}`)
    return 1
  }
  if (isJson) terminal.out(JSON.stringify(after, null, 2))
  else {
    const inForce = await loadGeneration(loaded, gateway, gateway.generation)
    terminal.out(summaryOf(after, inForce?.config.server.drainMs ?? null))
  }
  return 0
}

async function pageOf({ origin }: FoundGateway): Promise<Page> {
  return page.parse((await requestGateway(origin, '/workers')).json)
}

/**
 * Throws if the gateway cannot restart its workers, or if its process id belongs to another machine or
 * namespace.
 */
function checkSignals({ machine, restarts }: Page, origin: string): void {
  if (machine !== machineName()) {
    throw new Error(
      `The gateway at ${origin} runs on another machine or in a container: run this command there`,
    )
  }
  if (restarts !== null) return
  throw new Error(
    'The gateway is one process (server.workers: 1), which cannot hand its port to another process: restart the service, or set server.workers to 2 or more and restart it once',
  )
}

/** Sends a signal; 0 only checks that the process exists. */
function signal(pid: number, name: 'SIGUSR2' | 0): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    const isForeign = code === 'EPERM'
    const why = isForeign ? 'belongs to another user: run this command as that user' : 'has exited'
    throw new Error(`The gateway (process ${String(pid)}) ${why}`, { cause: error })
  }
}

/** Waits for a restart that started after the page `before`. Throws if the gateway exits. */
async function untilSettled(before: Page, readPage: () => Promise<Page | null>): Promise<Page> {
  const requested = before.restarts?.asked ?? 0
  for (;;) {
    await delay(POLL_MS)
    signal(before.pid, 0)
    const now = await readPage()
    if (now !== null && (now.restarts?.settled ?? 0) > requested) return now
  }
}

function summaryOf({ workers }: Page, drainMs: number | null): string {
  const draining = workers.filter(({ state }) => state === 'draining').length
  const serving = workers.length - draining
  const time = drainMs === null ? 'server.drain_ms' : `${String(drainMs)} ms`
  const rest = `${String(draining)} previous ones finish their requests within ${time}`
  return `${String(serving)} new workers serve; ${draining === 0 ? 'all previous ones have exited' : rest}`
}
