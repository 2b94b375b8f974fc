/** `sluice runs`: shows a run of an account, and ends one, beside a running gateway. */
import { endRun, isRun, isUnused, runDimension, runName, shownRun } from '../control/runs.js'
import type { Account } from '../accounts/account.js'
import type { ValueRecord } from '../store/dimension-values.js'
import { commandActor } from './accounts.js'
import { configOption, declare, UsageError } from './command.js'
import { namedAccount, withStore, type OpenStore, type StoreSession } from './with-store.js'

/** The run of the options. */
interface RunOptions {
  readonly account: string
  readonly run: string
  readonly reason?: string | undefined
}

/** `sluice runs`. */
export function command(open: OpenStore = withStore) {
  const runs = declare({
    name: 'runs',
    summary: 'show a run of an account, or end it',
    description: `
A run is a value of the dimension 'run' of the configuration. 'show' prints what it has used and what is left
of its limits, as JSON. 'end' cuts its running requests on every gateway within a second; later ones get 403
run_ended for keep_seconds of the dimension. A run may be ended before its first request.`,
    example: "sluice runs end --config config/gateway.yaml --account shop --run r-17 --reason 'it loops'",
  })
  runs
    .command('show')
    .requiredOption('--account <ACCOUNT>', ACCOUNT)
    .requiredOption('--run <RUN>', RUN)
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => show(session, options))
    })
  runs
    .command('end')
    .requiredOption('--account <ACCOUNT>', ACCOUNT)
    .requiredOption('--run <RUN>', RUN)
    .option('--reason <TEXT>', 'why, for the audit trail')
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => end(session, options))
    })
  return runs
}

const ACCOUNT = "the account's name, id or e-mail address"
const RUN = 'the value of the dimension `run`'

async function show(session: StoreSession, { account: named, run }: RunOptions): Promise<number> {
  const account = await accountOf(session, named, run)
  if (account === null) return 1
  const record = await session.store.dimensionValues.find(runName(account, run), Date.now())
  if (record !== null && !isUnused(record)) {
    await print(session, account, run, record)
    return 0
  }
  session.terminal.err(`sluice: no request of ${account.name} had the run "${run}"`)
  return 1
}

async function end(session: StoreSession, { account: named, run, reason = '' }: RunOptions): Promise<number> {
  const account = await accountOf(session, named, run)
  if (account === null) return 1
  const actor = { ...commandActor(), reason }
  const record = await endRun(session.store, session.gateway, { account, run, nowMs: Date.now(), actor })
  await print(session, account, run, record)
  return 0
}

/** Null after a message. */
async function accountOf(session: StoreSession, account: string, run: string): Promise<Account | null> {
  if (!isRun(run)) throw new UsageError('--run must have 1 to 128 printable characters')
  if (runDimension(session.gateway) === null) {
    session.terminal.err(
      'sluice: the configuration has no dimension "run": add one, such as dimensions: [{ name: run, from: ["header:x-run-id"] }]',
    )
    return null
  }
  return namedAccount(session, account)
}

async function print(
  session: StoreSession,
  account: Account,
  run: string,
  record: ValueRecord,
): Promise<void> {
  const shown = await shownRun(session.store, session.gateway, { account, run, record })
  session.terminal.out(JSON.stringify(shown, undefined, 2))
}
