/** `sluice cache`: drops stored replies of the exact cache. */
import { counted } from '../base/counted.js'
import { clearReplies } from '../policy/cache-in-store.js'
import { configOption, declare } from './command.js'
import { namedAccount, withStore, type OpenStore, type StoreSession } from './with-store.js'

/** `sluice cache`. */
export function command(open: OpenStore = withStore) {
  const cache = declare({
    name: 'cache',
    summary: 'drop stored replies of the exact cache',
    description: `
Drops the stored replies that match all given options, or all of them, and prints their number. Running
gateways on the same store follow within a second.`,
    example: 'sluice cache clear --config config/gateway.yaml --model gpt-5.4',
  })
  cache
    .command('clear')
    .option('--account <ACCOUNT>', 'only replies to the account with this name, id or e-mail address')
    .option('--key <ID>', 'only replies to requests of the key with this id')
    .option('--model <MODEL>', 'only replies to requests for this model, as the client named it')
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await open(options.config, (session) => clear(session, options))
    })
  return cache
}

interface ClearOptions {
  readonly account?: string | undefined
  readonly key?: string | undefined
  readonly model?: string | undefined
}

async function clear(session: StoreSession, values: ClearOptions): Promise<number> {
  const { store, terminal } = session
  const owner = values.account === undefined ? null : await namedAccount(session, values.account)
  if (owner === null && values.account !== undefined) return 1
  const number = await clearReplies(store.sealedRecords, {
    ...(owner === null ? {} : { accountId: owner.id }),
    ...(values.key === undefined ? {} : { keyId: values.key }),
    ...(values.model === undefined ? {} : { model: values.model }),
  })
  terminal.out(`Dropped ${counted(number, 'stored reply', 'stored replies')}.`)
  return 0
}
