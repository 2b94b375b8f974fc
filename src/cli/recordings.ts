/** `sluice recordings`: lists, shows and deletes recorded requests. */
import type { RecordConfig } from '../config/schema/record-schema.js'
import {
  recordingsOf,
  RecordingSeal,
  valuesOf,
  type Recording,
  type RecordingHead,
  type Recordings,
} from '../policy/encrypted-recordings.js'
import { commandEntry } from './accounts.js'
import { configOption, declare } from './command.js'
import { printList } from './print-table-or-json.js'
import { rangeOf, TIME_FORMS } from './time-range.js'
import { configInForce, namedAccount, processTerminal, withStore, type StoreSession } from './with-store.js'

/** `sluice recordings`. */
export function command() {
  const recordings = declare({
    name: 'recordings',
    summary: 'list, show and delete recorded requests',
    description: `
Works on the recordings of 'record' in the configuration file, with or without a running gateway. ID is the id
of the request, as in x-request-id. Each reading of a recording is in the audit trail.`,
    exitStatus: '0 success, 1 failure or no such recording, 2 wrong usage.',
    example: 'sluice recordings list --config config/gateway.yaml --since 24h --json',
  })
  recordings
    .command('list')
    .option('--account <ACCOUNT>', 'only recordings of the account with this name, id or e-mail address')
    .option('--since <TIME>', TIME_FORMS)
    .option('--json', 'print JSON')
    .addOption(configOption())
    .action(async ({ config, ...options }) => {
      process.exitCode = await withRecordings(config, (opened) => list(opened, options))
    })
  recordings
    .command('show')
    .argument('<ID>')
    .option('--json', 'print JSON')
    .addOption(configOption())
    .action(async (id, { config, json }) => {
      process.exitCode = await withRecordings(config, async (opened) => {
        const found = await readRecording(opened, id)
        if (found === null) return missing(opened, id)
        const { request, reply, client, upstream } = found.recording
        const shown = { id, request, reply, client, upstream, ...valuesOf(found.recording) }
        opened.session.terminal.out(JSON.stringify(shown, null, json ? 0 : 2))
        return 0
      })
    })
  recordings
    .command('delete')
    .argument('<ID>')
    .addOption(configOption())
    .action(async (id, { config }) => {
      process.exitCode = await withRecordings(config, async (opened) => {
        const found = await opened.recordings.find(id, Date.now())
        const { accountId = '' } = found?.head ?? {}
        const entry = commandEntry({ accountId, action: 'recording.delete', target: id, detail: '' })
        const isDeleted = found !== null && (await opened.recordings.remove(id, entry))
        if (!isDeleted) return missing(opened, id)
        opened.session.terminal.out(`${id}: deleted`)
        return 0
      })
    })
  return recordings
}

/** The recordings of a configuration, and the session of a command. */
export interface OpenedRecordings {
  readonly session: StoreSession
  readonly recordings: Recordings
  readonly seal: RecordingSeal
}

const IN_STORE: RecordConfig['to'] = { kind: 'store' }

/** Opens the recordings of the configuration file for the work. */
export async function withRecordings(
  config: string,
  work: (opened: OpenedRecordings) => Promise<number>,
): Promise<number> {
  const inForce = await configInForce(config, (line) => processTerminal.err(line))
  if (inForce === null) return 1
  const { record, escrow } = inForce.config
  return withStore(config, async (session) => {
    const { terminal, store } = session
    if (escrow.key === null) {
      terminal.err('sluice: recordings need escrow.key in the configuration file')
      return 1
    }
    const recordings = recordingsOf(record?.to ?? IN_STORE, store)
    if (recordings === null) {
      terminal.err('sluice: recordings are sent to a URL (record.to), and none are kept here')
      return 1
    }
    return work({ session, recordings, seal: new RecordingSeal(escrow.key) })
  })
}

/** A recording, whose reading the audit trail notes; null if there is none, or another key has sealed it. */
export async function readRecording(
  { session, recordings, seal }: OpenedRecordings,
  id: string,
): Promise<{ readonly head: RecordingHead; readonly recording: Recording } | null> {
  const found = await recordings.find(id, Date.now())
  const recording = found === null ? null : seal.open(found.head, found.sealed)
  if (found === null || recording === null) return null
  const { accountId } = found.head
  const entry = { accountId, action: 'recording.read', target: id, detail: '' }
  await session.store.auditTrail.add(commandEntry(entry))
  return { head: found.head, recording }
}

/** Selects recordings. */
export interface RecordingOptions {
  readonly account?: string | undefined
  readonly since?: string | undefined
}

/** The heads that the options select; null after an error. */
export async function selectedHeads(
  { session, recordings }: OpenedRecordings,
  { account, since }: RecordingOptions,
): Promise<RecordingHead[] | null> {
  const owner = account === undefined ? null : await namedAccount(session, account)
  if (owner === null && account !== undefined) return null
  const nowMs = Date.now()
  const { fromMs } = rangeOf({ since }, '1970-01-01', nowMs)
  const filter = { sinceMs: fromMs, ...(owner === null ? {} : { accountId: owner.id }) }
  return recordings.list(filter, nowMs)
}

async function list(
  opened: OpenedRecordings,
  options: RecordingOptions & { readonly json?: true },
): Promise<number> {
  const heads = await selectedHeads(opened, options)
  if (heads === null) return 1
  const { store, terminal } = opened.session
  if (options.json) {
    terminal.out(JSON.stringify(heads.map(rowOf)))
    return 0
  }
  const names = new Map<string, string>()
  for (const accountId of new Set(heads.map((head) => head.accountId))) {
    names.set(accountId, (await store.accountById(accountId))?.name ?? accountId)
  }
  await printList(terminal, asPages(heads), {
    json: null,
    head: ['REQUEST', 'RECORDED', 'ACCOUNT', 'MODEL', 'UPSTREAM', 'STATUS', 'SIZE'],
    cells: ({ id, atMs, accountId, model, upstream, status, bytes }) => {
      const account = names.get(accountId) ?? accountId
      const at = new Date(atMs).toISOString()
      return [id, at, account, model, upstream ?? '', String(status), `${(bytes / 1000).toFixed(1)} kB`]
    },
    none: 'There are no recordings.',
  })
  return 0
}

async function* asPages<Item>(items: readonly Item[]): AsyncGenerator<readonly Item[]> {
  yield await Promise.resolve(items)
}

/** A recording in lists. */
export function rowOf({ id, atMs, accountId, model, upstream, status, bytes }: RecordingHead) {
  const at = new Date(atMs).toISOString()
  return { id, at, account_id: accountId, model, upstream, status, bytes }
}

/** Prints why the recording cannot be used; returns the exit status. */
export async function missing({ session, recordings }: OpenedRecordings, id: string): Promise<number> {
  const isSealed = (await recordings.find(id, Date.now())) !== null
  session.terminal.err(
    isSealed
      ? `sluice: recording '${id}' cannot be opened: another escrow.key has sealed it`
      : `sluice: no recording '${id}': it is unknown, or has expired`,
  )
  return 1
}
