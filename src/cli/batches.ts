/** `sluice batches`: lists, shows and cancels batches of all accounts, beside a running gateway. */
import {
  batchPage,
  batchRecords,
  cancelBatch,
  findBatch,
  ownerName,
  ownerNames,
  shownBatch,
} from '../control/batches.js'
import { SHOWN_STATES, type BatchHead, type BatchRecords } from '../policy/batch-records.js'
import { commandActor } from './accounts.js'
import { configOption, declare, UsageError } from './command.js'
import { printList } from './print-table-or-json.js'
import { namedAccount, withStore, type OpenStore, type StoreSession } from './with-store.js'

const PAGE = 500

/** `sluice batches`. */
export function command(open: OpenStore = withStore) {
  const batches = declare({
    name: 'batches',
    summary: 'list, show and cancel batches of accounts',
    description: `
'list' prints the batches of POST /v1/batches, newest first; 'show' prints one as JSON. 'cancel' sends no more
of its lines: what ran is charged, as when its client cancels it. A gateway of the store does it within
seconds.`,
    example: "sluice batches cancel --config config/gateway.yaml --batch batch_8Zk2 --reason 'wrong model'",
  })
  batches
    .command('list')
    .option('--account <ACCOUNT>', 'only those of the account with this name, id or e-mail address')
    .option('--state <STATE>', `only those in this state: ${SHOWN_STATES.join(', ')}`)
    .option('--json', 'print JSON')
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => list(session, options))
    })
  batches
    .command('show')
    .requiredOption('--batch <ID>', BATCH)
    .addOption(configOption())
    .action(async ({ config, batch }) => {
      process.exitCode = await open(config, (session) => show(session, batch))
    })
  batches
    .command('cancel')
    .requiredOption('--batch <ID>', BATCH)
    .option('--reason <TEXT>', 'why, for the audit trail')
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => cancel(session, options))
    })
  return batches
}

const BATCH = "the id of a batch, as printed by 'list'"

interface ListOptions {
  readonly account?: string | undefined
  readonly state?: string | undefined
  readonly json?: true | undefined
}

async function list(session: StoreSession, options: ListOptions): Promise<number> {
  const { terminal } = session
  const { account: named, json } = options
  const state = options.state ?? null
  if (state !== null && !SHOWN_STATES.some((each) => each === state)) {
    throw new UsageError(`--state must be one of ${SHOWN_STATES.join(', ')}`)
  }
  const account = named === undefined ? null : await namedAccount(session, named)
  if (account === null && named !== undefined) return 1
  const accounts = account === null ? null : new Set([account.id])
  const names = new Map<string, string>()
  const nameOf = ({ accountId }: BatchHead): string => names.get(accountId) ?? accountId
  await printList(terminal, pages(session, { accounts, state }, names), {
    json: json === true ? (batch) => shownBatch(batch, nameOf(batch)) : null,
    head: ['BATCH', 'STATE', 'ACCOUNT', 'MODEL', 'UPSTREAM', 'DONE', 'FAILED', 'LINES', 'CREATED'],
    cells: (batch) => {
      const { state: shown, model, upstream, created_at: created } = shownBatch(batch, nameOf(batch))
      const { total, completed, failed } = batch.info.counts
      const texts = [batch.id, shown, nameOf(batch), model, upstream ?? '', completed, failed, total, created]
      return texts.map(String)
    },
    none: 'There are no batches.',
  })
  return 0
}

async function* pages(
  { store, gateway }: StoreSession,
  filter: Parameters<typeof batchPage>[1],
  names: Map<string, string>,
): AsyncGenerator<readonly BatchHead[]> {
  const records = batchRecords(store, gateway)
  let after: string | null = null
  while (records !== null) {
    const { items, next }: Awaited<ReturnType<typeof batchPage>> = await batchPage(records, filter, {
      ...{ after, limit: PAGE },
    })
    for (const [id, name] of await ownerNames(store, items)) names.set(id, name)
    yield items
    if (next === null) return
    after = next
  }
}

/** Null after a message. */
async function batchOf(
  { store, gateway, terminal }: StoreSession,
  id: string,
): Promise<{ readonly records: BatchRecords; readonly batch: BatchHead } | null> {
  const records = batchRecords(store, gateway)
  const batch = records === null ? null : await findBatch(records, id)
  if (records !== null && batch !== null) return { records, batch }
  terminal.err(`sluice: there is no batch "${id}": 'sluice batches list' shows all`)
  return null
}

async function show(session: StoreSession, id: string): Promise<number> {
  const found = await batchOf(session, id)
  if (found === null) return 1
  await print(session, found.batch)
  return 0
}

async function cancel(
  session: StoreSession,
  { batch: id, reason = '' }: { readonly batch: string; readonly reason?: string | undefined },
): Promise<number> {
  const found = await batchOf(session, id)
  if (found === null) return 1
  const { records, batch } = found
  const actor = { ...commandActor(), reason }
  const cancelled = await cancelBatch(records, { batch, nowMs: Date.now(), actor })
  await print(session, cancelled)
  return 0
}

async function print({ store, terminal }: StoreSession, batch: BatchHead): Promise<void> {
  const shown = shownBatch(batch, await ownerName(store, batch))
  terminal.out(JSON.stringify(shown, undefined, 2))
}
