/** `sluice cache`: drops stored replies of the exact cache. */
import { clearReplies } from '../policy/shared-replies.js'
import { parseAction, type Command } from './command.js'
import { namedAccount, openingFor, withStore, type StoreSession } from './with-store.js'

/** `sluice cache`. */
export const command: Command = {
  name: 'cache',
  summary: 'drop stored replies of the exact cache',
  help: `
Usage: sluice cache clear [--account ACCOUNT] [--key ID] [--model MODEL] [--config FILE]

Drops the stored replies that match all given options, or all of them, and prints their number. Running gateways
on the same store follow within a second.

Options:
  --config FILE      the configuration file (default: the variable SLUICE_CONFIG)
  --account ACCOUNT  only replies to the account with this id or e-mail address
  --key ID           only replies to requests of the key with this id
  --model MODEL      only replies to requests for this model, as the client named it

Exit status: 0 success, 1 failure, 2 wrong usage.

Example:
  sluice cache clear --config config/gateway.yaml --model gpt-5.4
`,
  run(argv) {
    const { values } = parseCache(argv)
    return withStore(openingFor('sluice cache', values.config), (session) =>
      runCache(session, values),
    )
  },
}

const OPTIONS = {
  config: { type: 'string' },
  account: { type: 'string' },
  key: { type: 'string' },
  model: { type: 'string' },
} as const

/** The options of the action. */
export type CacheValues = ReturnType<typeof parseCache>['values']

/** The action and its options. Throws `UsageError` or parseArgs's error. */
export function parseCache(argv: readonly string[]) {
  return parseAction('cache', argv, {
    options: OPTIONS,
    allowed: { clear: Object.keys(OPTIONS) } as const,
  })
}

/** Runs the action on an open store. */
export async function runCache(session: StoreSession, values: CacheValues): Promise<number> {
  const { store, terminal } = session
  const owner = values.account === undefined ? null : await namedAccount(session, values.account)
  if (owner === null && values.account !== undefined) return 1
  const number = await clearReplies(store.sealedRecords, {
    ...(owner === null ? {} : { accountId: owner.id }),
    ...(values.key === undefined ? {} : { keyId: values.key }),
    ...(values.model === undefined ? {} : { model: values.model }),
  })
  terminal.out(String(number))
  return 0
}
