/**
 * `sluice generations`: lists the configuration generations of the running gateway, shows their changes, and
 * rolls back.
 */
import { arrayOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../base/json.js'
import {
  historyOf,
  contentIn,
  recordsIn,
  type GenerationContent,
  type GenerationRecord,
} from '../config/generations/history.js'
import { differencesOf } from '../config/generations/diff-configs.js'
import { shownHash } from '../config/config.js'
import { loadConfig, type LoadResult } from '../config/load-config.js'
import { ownUser } from '../base/file-access.js'
import { configOption, declare, UsageError } from './command.js'
import { processTerminal, type Terminal } from './with-store.js'
import { table } from './print-table-or-json.js'
import {
  requestGateway,
  findGateway,
  loadGeneration,
  messageOf,
  type FoundGateway,
} from './running-gateway.js'

/** `sluice generations`. */
export function command() {
  const generations = declare({
    name: 'generations',
    summary: 'list the generations of the configuration, show their changes, roll back',
    description: `
list      the last 20 generations, newest first, with author and reason
show      the changes of generation N, compared with the one before it or with M
rollback  put the content of generation N in force, as a new generation. It stays in force, also after a
          restart, until the configuration file or its catalogue changes, or the gateway receives SIGHUP.
          It acts on the gateway of this file only: roll back each gateway that shares the store

list and show read the data folder if no gateway runs. rollback sends a request to the running gateway, with
server.admin_token of the configuration in force or the variable SLUICE_ADMIN_TOKEN.`,
    example: "sluice generations rollback 7 --reason 'errors doubled' --config config/gateway.yaml",
  })
  generations
    .command('list')
    .addOption(configOption())
    .option('--json', 'print JSON')
    .action(async (options) => {
      process.exitCode = await list(sessionOf(options))
    })
  generations
    .command('show')
    .argument('<N>', '', numberOf('N'))
    .option('--from <M>', 'the generation to compare with', numberOf('--from'))
    .addOption(configOption())
    .option('--json', 'print JSON')
    .action(async (generation, { from, ...options }) => {
      process.exitCode = await show(sessionOf(options), generation, from ?? null)
    })
  generations
    .command('rollback')
    .argument('<N>', '', numberOf('N'))
    .option('--reason <TEXT>', 'recorded with the rollback, at most 500 characters', '')
    .addOption(configOption())
    .option('--json', 'print JSON')
    .action(async (generation, { reason, ...options }) => {
      process.exitCode = await rollBack(sessionOf(options), generation, reason)
    })
  return generations
}

interface Session {
  readonly loaded: LoadResult
  readonly terminal: Terminal
  readonly json: boolean
}

function sessionOf({ config, json }: { config: string; json?: true }): Session {
  const loaded = loadConfig(config, process.env)
  return { loaded, terminal: processTerminal, json: json === true }
}

function numberOf(name: string): (text: string) => number {
  return (text) => {
    if (/^\d{1,15}$/.test(text)) return Number(text)
    throw new UsageError(`${name} must be the number of a generation: 'sluice generations list' shows them`)
  }
}

async function list({ loaded, terminal, json }: Session): Promise<number> {
  const gateway = await findGateway(loaded, process.env)
  const page = gateway?.page ?? pageOnDisk(loaded)
  if (gateway === null) terminal.err('sluice: no gateway runs with this file: showing its history')
  if (json) {
    terminal.out(JSON.stringify(page))
    return 0
  }
  const rows = arrayOf(page['generations']).map((each) => {
    const entry = objectOf(each)
    const mark = entry['in_force'] === true ? '*' : ''
    const hash = shownHash(stringOf(entry['hash']) ?? '')
    const texts = [entry['at'], entry['author']].map((text) => stringOf(text) ?? '')
    return [`${textOf(entry['generation'])}${mark}`, ...texts, hash, reasonOf(entry)]
  })
  if (rows.length === 0) terminal.err('sluice: no generations are stored')
  else terminal.out(table([['GENERATION', 'IN FORCE SINCE', 'AUTHOR', 'HASH', 'REASON'], ...rows]))
  for (const line of notesOf(page)) terminal.err(`sluice: ${line}`)
  return 0
}

function reasonOf(entry: JsonObject): string {
  const reason = stringOf(entry['reason']) ?? ''
  const from = entry['content_of']
  if (typeof from !== 'number') return reason
  return `rollback to ${String(from)}${reason === '' ? '' : `: ${reason}`}`
}

/** Notes about the configuration in force. */
function notesOf(page: JsonObject): string[] {
  const notes: string[] = []
  if (page['held'] === 'rollback') {
    notes.push('a rollback is in force until the file changes, or SIGHUP')
  }
  if (page['held'] === 'last_good') {
    notes.push('the file was not valid at the start: its last good generation is in force')
  }
  for (const problem of arrayOf(page['last_error'])) notes.push(`refused: ${textOf(problem)}`)
  const waiting = arrayOf(page['waiting_for_restart'])
  if (waiting.length > 0) notes.push(`waiting for a restart: ${waiting.map(textOf).join(', ')}`)
  return notes
}

function pageOnDisk(loaded: LoadResult): JsonObject {
  const folder = historyOf(loaded, process.env)
  const records = folder === null ? [] : recordsIn(folder)
  return { file: loaded.sources.path, generation: null, generations: records.map(shown) }
}

function shown({ generation, hash, atMs, author, reason, ...record }: GenerationRecord): JsonObject {
  const { origin, contentOf } = record
  const at = new Date(atMs).toISOString()
  return { generation, hash, at, author, reason, origin, content_of: contentOf, in_force: false }
}

async function show(
  { loaded, terminal, json }: Session,
  generation: number,
  from: number | null,
): Promise<number> {
  const gateway = await findGateway(loaded, process.env)
  const path = `/generations/${String(generation)}${from === null ? '' : `?from=${String(from)}`}`
  const reply =
    gateway === null ? await showOnDisk(loaded, generation, from) : await requestGateway(gateway.origin, path)
  if (reply.status !== 200) {
    terminal.err(`sluice: ${messageOf(reply)}`)
    return 1
  }
  if (json) {
    terminal.out(JSON.stringify(reply.json))
    return 0
  }
  const entry = reply.json
  terminal.out(`generation  ${String(generation)}${entry['in_force'] === true ? ', in force' : ''}`)
  for (const key of ['at', 'author', 'hash'] as const) {
    terminal.out(`${key.padEnd(10)}  ${stringOf(entry[key]) ?? ''}`)
  }
  terminal.out(`reason      ${reasonOf(entry)}`)
  const { compared_with: comparedWith } = entry
  if (typeof comparedWith !== 'number') return 0
  const changes = arrayOf(entry['changes']).map(objectOf)
  terminal.out(`\nchanges from generation ${String(comparedWith)}: ${String(changes.length)}`)
  for (const change of changes) {
    const [before, after] = [stringOf(change['before']), stringOf(change['after'])]
    terminal.out(`  ${stringOf(change['path']) ?? ''}: ${before ?? '(none)'} → ${after ?? '(none)'}`)
  }
  return 0
}

async function showOnDisk(
  loaded: LoadResult,
  generation: number,
  from: number | null,
): Promise<{ status: number; json: JsonObject }> {
  const folder = historyOf(loaded, process.env)
  const records = folder === null ? [] : recordsIn(folder)
  const record = records.find((each) => each.generation === generation)
  const other = from ?? records.find((each) => each.generation < generation)?.generation ?? null
  const contentOf = (each: number | null): Promise<GenerationContent | null> =>
    folder === null || each === null ? Promise.resolve(null) : contentIn(folder, each)
  const [content, former] = await Promise.all([contentOf(generation), contentOf(other)])
  if (record === undefined || content === null) {
    const message = `There is no generation ${String(generation)}: 'sluice generations list' shows them`
    return { status: 404, json: { error: { message } } }
  }
  const changes = former === null ? [] : differencesOf(former.shown, content.shown)
  const compared = {
    compared_with: former === null ? null : other,
    changes: changes.map((each) => ({ ...each })),
  }
  return { status: 200, json: { ...shown(record), ...compared, config: content.shown } }
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null)
}

async function rollBack(
  { loaded, terminal, json }: Session,
  generation: number,
  reason: string,
): Promise<number> {
  const gateway = await findGateway(loaded, process.env)
  if (gateway === null) {
    const why =
      'change the file instead. A gateway that starts with an invalid file uses its last good generation'
    terminal.err(`sluice: no gateway runs with ${loaded.sources.path}: ${why}`)
    return 1
  }
  const token = await tokenOf(loaded, gateway)
  if (token === null) {
    terminal.err(
      'sluice: a rollback needs server.admin_token in the configuration in force, or the variable SLUICE_ADMIN_TOKEN',
    )
    return 1
  }
  const body = { author: ownUser(), reason }
  const path = `/generations/${String(generation)}/rollback`
  const reply = await requestGateway(gateway.origin, path, { token, body })
  if (reply.status !== 200) {
    terminal.err(`sluice: ${messageOf(reply)}`)
    return 1
  }
  const created = textOf(reply.json['generation'])
  if (json) terminal.out(JSON.stringify(reply.json))
  else terminal.out(`generation ${created} is in force, with the content of generation ${String(generation)}`)
  terminal.err(`sluice: ${stringOf(reply.json['message']) ?? ''}`)
  terminal.err('sluice: the rollback ends when the file changes, or with SIGHUP')
  return 0
}

/** From the configuration in force, since the file may have changed or be invalid. */
async function tokenOf(loaded: LoadResult, gateway: FoundGateway): Promise<string | null> {
  const inForce = await loadGeneration(loaded, gateway, gateway.generation)
  const ofFile = loaded.ok ? loaded.config.server.adminToken : null
  const variable = process.env['SLUICE_ADMIN_TOKEN'] ?? ''
  return inForce?.config.server.adminToken ?? ofFile ?? (variable === '' ? null : variable)
}
