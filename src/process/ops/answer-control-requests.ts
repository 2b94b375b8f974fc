/**
 * The part of `ConfigControl` in the process that reads the configuration: lists generations and rolls back,
 * for this process and for requests of workers.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { isObject, objectOf, type JsonValue, parsedJson } from '../../base/json.js'
import { generationFields, type Snapshot } from '../../config/config.js'
import { differencesOf } from '../../config/generations/diff-configs.js'
import type { ConfigSource } from '../../config/generations/config-source.js'
import { withoutSecrets } from '../../config/masked-config.js'
import { programFile } from '../../config/package-file.js'
import { formatProblem } from '../../config/config-problem.js'
import type {
  ConfigControl,
  GenerationList,
  ControlRequest,
  PlanResult,
  RollbackResult,
} from '../../control/config-control.js'
import type { Logger } from '../../observe/log.js'
import { isRedisUrl } from '../../store/store-address.js'

/** The log line of a rollback that failed; its field `generation` is the requested one. */
export const ROLLBACK_FAILED = 'rollback failed'

/**
 * Serves generations from this process, which reads the configuration. Logs rollbacks that fail; others are
 * logged as new generations.
 */
export function localConfigControl(source: ConfigSource, log: Logger): ConfigControl {
  return {
    list: () => Promise.resolve(generationList(source)),
    async show(generation, from) {
      const record = source.history.find(generation)
      const content = await source.history.content(generation)
      if (record === null || content === null) return null
      const comparedWith = from ?? previous(source, generation)
      const former = comparedWith === null ? null : await source.history.content(comparedWith)
      const changes = former === null ? [] : differencesOf(former.shown, content.shown)
      const isInForce = source.current().generation === generation
      // An older generation may have a secret of the one in force where nothing marks it as one.
      const shown = { isInForce, values: objectOf(withoutSecrets(content.shown)) }
      return { record, ...shown, comparedWith: former === null ? null : comparedWith, changes }
    },
    async rollBack({ generation, author, reason, isRecorded }) {
      const outcome = await source.rollBack(generation, { author, reason }, isRecorded)
      const result = resultOf(generation, outcome)
      if (result.result !== 'applied') {
        const { gateway, generation_hash } = generationFields(source.current())
        log.warn(ROLLBACK_FAILED, { generation, gateway, generation_hash, reason: result.message })
      }
      return result
    },
    plan: (text) => planInChild(source.path, text),
  }
}

/** The program, beside this file in the build and in the package. */
const PROGRAM = fileURLToPath(programFile('main.js'))
/** Shorter than a worker waits for the reply. */
const PLAN_MS = 29_000
const MAX_PLANS = 2
let plans = 0

/**
 * Runs `sluice plan --untrusted` in a process of its own, because comparing a thousand requests takes longer
 * than a turn of the event loop may. Null if it fails, takes too long, or two run already.
 */
async function planInChild(path: string, text: string): Promise<PlanResult | null> {
  if (plans >= MAX_PLANS) return null
  plans += 1
  try {
    const child = spawn(process.execPath, [PROGRAM, 'plan', '-', '--untrusted', '--config', path, '--json'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      timeout: PLAN_MS,
    })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
    child.stdin.on('error', () => undefined).end(text)
    await new Promise<void>((resolve) => {
      child.once('error', () => resolve()).once('close', () => resolve())
    })
    return planIn(output)
  } finally {
    plans -= 1
  }
}

function planIn(output: string): PlanResult | null {
  const value = parsedJson(output)
  if (!isObject(value)) return null
  const { errors } = value
  if (!Array.isArray(errors)) return { plan: value }
  const problems = errors.filter(isObject).map(({ line, column, path, message }) => {
    const place = path === '' ? '' : ` ${shownText(path)}:`
    return `${shownText(line)}:${shownText(column)}:${place} ${shownText(message)}`
  })
  return { problems }
}

function shownText(value: JsonValue | undefined): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** The reply to a worker's request about generations; undefined for other requests. */
export async function answerControlRequest(control: ConfigControl, request: unknown): Promise<unknown> {
  if (!isControlRequest(request)) return undefined
  switch (request.type) {
    case 'generations':
      return control.list()
    case 'generation':
      return control.show(request.generation, request.from)
    case 'rollback':
      return control.rollBack(request)
    case 'plan':
      return control.plan(request.text)
    case 'gatewayStatus':
      return undefined
    default:
      return request satisfies never
  }
}

/** A check of the type is enough, since the other process is the same program. */
function isControlRequest(value: unknown): value is ControlRequest {
  return isObject(value) && typeof value['type'] === 'string'
}

/** The stored generations, and the one in force. */
export function generationList(source: ConfigSource): GenerationList {
  const { override, lastError, history } = source
  const { generation, waitingForRestart } = source.current()
  return {
    file: source.path,
    inForce: generation,
    startedGeneration: source.startedGeneration,
    held: override,
    problems: lastError === null ? null : lastError.map(formatProblem),
    waitingForRestart,
    generations: history.list(),
  }
}

/** The generation that was in force before it, if it is stored. */
function previous({ history }: ConfigSource, generation: number): number | null {
  return history.list().find((each) => each.generation < generation)?.generation ?? null
}

/** A rollback acts on one gateway: each has generations of its own, and perhaps a file of its own. */
function applied({ generation, config, changes }: Snapshot): RollbackResult {
  const { name: gateway } = config.server
  const others = isRedisUrl(config.store)
    ? 'other gateways of the store keep their configuration: roll each of them back, or change their files'
    : 'no other gateway shares its store'
  const message = `only the gateway '${gateway}' has rolled back; ${others}`
  return { result: 'applied', generation, gateway, changes, message }
}

function resultOf(
  generation: number,
  outcome: Awaited<ReturnType<ConfigSource['rollBack']>>,
): RollbackResult {
  switch (outcome.result) {
    case 'applied':
      return applied(outcome.snapshot)
    case 'unknown':
      return {
        result: 'unknown',
        message: `There is no generation ${generation}: GET /generations lists the stored ones.`,
      }
    case 'current':
      return { result: 'refused', message: `Generation ${generation} is in force already.` }
    case 'unreadable':
      return {
        result: 'refused',
        message: `The files of generation ${generation} cannot be read: choose another one.`,
      }
    case 'refused': {
      const problems = outcome.errors.map(formatProblem).join('; ')
      return {
        result: 'refused',
        message: `Generation ${generation} cannot be put in force now: ${problems}`,
      }
    }
    default:
      return outcome satisfies never
  }
}
