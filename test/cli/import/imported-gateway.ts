/** Imports a configuration, points its upstreams at an emulator, and starts the gateway that comes of it. */
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { loadConfig } from '../../../src/config/load-config.js'
import { formatProblem } from '../../../src/config/config-problem.js'
import { createSnapshot } from '../../../src/config/create-snapshot.js'
import { parseYaml, yamlText } from '../../../src/config/yaml.js'
import { isObject, objectOf, type JsonObject } from '../../../src/base/json.js'
import { startEmulator, type Emulator } from '../../../src/emulator/server.js'
import { createLogger } from '../../../src/observe/log.js'
import { Metrics } from '../../../src/observe/metrics/metrics.js'
import { openDataPlane } from '../../../src/process/data-plane.js'
import { localConfigControl } from '../../../src/process/ops/answer-control-requests.js'
import { openConfig } from '../../../src/config/generations/config-at-start.js'
import { sluiceHere } from '../session.js'

/** The output of an import. */
export interface Imported {
  readonly folder: string
  readonly status: number
  readonly out: string
  readonly err: string
  readonly summary: JsonObject
}

/** Runs `sluice import` with `--json` into a new folder. */
export async function imported(
  t: Test,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Imported> {
  if (!existsSync(t.testdirName)) t.testdir()
  const folder = mkdtempSync(join(t.testdirName, 'import-'))
  const { status, out, err } = await sluiceHere(['import', ...args, '--out', folder, '--json'], { env })
  const value: unknown = status === 0 ? JSON.parse(out) : {}
  return { folder, status, out, err, summary: objectOf(isObject(value) ? value : {}) }
}

/** A running gateway of an import. */
export interface ImportedGateway {
  readonly origin: string
  readonly emulator: Emulator
  readonly configFile: string
}

/** Starts it; `env` and the imported `.env` are its variables. */
export async function startImported(
  t: Test,
  { folder }: Imported,
  env: Record<string, string> = {},
): Promise<ImportedGateway> {
  const emulator = await startEmulator({ models: 'any' })
  t.teardown(() => emulator.close())
  const configFile = join(folder, 'gateway.yaml')
  const parsed = parseYaml(configFile, readFileSync(configFile, 'utf8')).value
  const gateway = isObject(parsed) ? parsed : {}
  const upstreams = Object.entries(objectOf(gateway['upstreams'] as JsonObject)).map(([name, upstream]) => {
    return [name, isObject(upstream) ? emulated(upstream, emulator) : upstream] as const
  })
  const served = {
    ...gateway,
    server: { ...objectOf(gateway['server']), host: '127.0.0.1', port: 0, ops_port: 0 },
    upstreams: Object.fromEntries(upstreams),
  }
  writeFileSync(configFile, yamlText([served]))
  const variables = { ...env, ...dotenv(folder) }
  const loaded = loadConfig(configFile, variables)
  if (!loaded.ok) throw new Error(loaded.errors.map((problem) => formatProblem(problem)).join('\n'))
  const log = createLogger({ level: 'error', destination: { write: () => undefined } })
  const source = await openConfig(configFile, variables)
  t.teardown(() => source.close())
  const plane = await openDataPlane(createSnapshot(loaded, { generation: 1, loadedAtMs: Date.now() }), {
    log,
    metrics: new Metrics({ processMetrics: false }),
    configControl: localConfigControl(source, log),
  })
  t.teardown(() => plane.drain())
  return { origin: `http://127.0.0.1:${plane.port}`, emulator, configFile }
}

/** The upstream at the emulator. */
function emulated(upstream: JsonObject, { baseUrls, origin }: Emulator): JsonObject {
  const { platform, preset, dialect } = upstream
  const keyed: JsonObject = { ...upstream, allow_private_address: true }
  if (platform === 'bedrock') {
    const aws = { access_key_id: 'AKIDEXAMPLE', secret_access_key: 'example' }
    return { ...keyed, base_url: baseUrls.bedrock, auth: { aws } }
  }
  if (platform === 'azure') return { ...keyed, base_url: origin }
  if (platform === 'vertex') {
    const { auth, ...others } = keyed
    return { ...others, ...(auth === undefined ? {} : { api_key: 'emulated' }), base_url: origin }
  }
  const format = dialect ?? preset
  const base =
    format === 'anthropic' ? baseUrls.anthropic : format === 'gemini' ? baseUrls.gemini : baseUrls.openai
  const ibm = objectOf(objectOf(upstream['auth'])['ibm'])
  if (ibm['api_key'] !== undefined) {
    return { ...keyed, base_url: base, auth: { ibm: { ...ibm, token_url: `${origin}/ibm/identity/token` } } }
  }
  return { api_key: 'emulated', ...keyed, base_url: base }
}

/** The variables of the imported `.env`. */
export function dotenv(folder: string): Record<string, string> {
  let text = ''
  try {
    text = readFileSync(join(folder, '.env'), 'utf8')
  } catch {
    return {}
  }
  const lines = text.split('\n').filter((line) => line !== '')
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf('=')
      return [line.slice(0, at), line.slice(at + 1).replace(/^'(.*)'$/, '$1')]
    }),
  )
}
