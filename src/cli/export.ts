/** `sluice export accounts`: prints what exists as documents of `sluice apply`, without secrets. */
import { accountValues, keyValues, memberValues } from '../accounts/changes/fields.js'
import { MAX_LEVELS, type Account } from '../accounts/account.js'
import { hasName } from '../accounts/account.js'
import { yamlText } from '../config/yaml.js'
import { isObject, type JsonObject } from '../base/json.js'
import { everyAccount, everyKey } from '../store/list-all.js'
import { configOption, declare } from './command.js'
import { namedAccount, withStore, type OpenStore, type StoreSession } from './with-store.js'

/** `sluice export`. */
export function command(open: OpenStore = withStore) {
  const documents = declare({
    name: 'export',
    summary: 'print accounts, members and keys as documents of apply',
    description: `
Prints accounts, members and keys as YAML documents of 'sluice apply', parents first, without secrets.
Applying them to the same store changes nothing.`,
    example: 'sluice export accounts --config config/gateway.yaml > accounts.yaml',
  })
  documents
    .command('accounts')
    .option('--account <ACCOUNT>', 'only this account, by its name, id or e-mail address')
    .addOption(configOption())
    .action(async ({ config, account }) => {
      process.exitCode = await open(config, (session) => exportAccounts(session, account ?? null))
    })
  return documents
}

async function exportAccounts(session: StoreSession, name: string | null): Promise<number> {
  const { store, terminal } = session
  const only = name === null ? null : await namedAccount(session, name)
  if (only === null && name !== null) return 1
  const accounts = new Map<string, Account>()
  for await (const account of everyAccount(store)) accounts.set(account.id, account)
  const chosen = only === null ? [...accounts.values()] : [only]
  const levels = new Map(chosen.map((account) => [account, levelOf(account, accounts)]))
  chosen.sort((a, b) => (levels.get(a) ?? 0) - (levels.get(b) ?? 0) || (a.name < b.name ? -1 : 1))
  let isFirst = true
  for (const account of chosen) {
    const { parentId } = account
    const parent = parentId === undefined ? null : (accounts.get(parentId)?.name ?? null)
    const text = yamlText(await documentsOf(session, account, parent)).replace(/\n$/, '')
    terminal.out(isFirst ? text : `---\n${text}`)
    await terminal.ready()
    isFirst = false
  }
  return 0
}

function levelOf({ parentId }: Account, accounts: ReadonlyMap<string, Account>): number {
  let level = 0
  for (let id = parentId; id !== undefined && level < MAX_LEVELS; id = accounts.get(id)?.parentId) {
    level += 1
  }
  return level
}

async function documentsOf(
  { store }: StoreSession,
  account: Account,
  parent: string | null,
): Promise<JsonObject[]> {
  const { id, name } = account
  const values = accountValues(account, parent)
  const spec = values['display_name'] === name ? { ...values, display_name: null } : values
  const documents = [documentOf('Account', { name }, { ...spec, plan: account.plan })]
  for (const member of await store.membersOf(id)) {
    documents.push(documentOf('Member', { name: member.email, account: name }, memberValues(member)))
  }
  for await (const key of everyKey(store, id)) {
    if (!hasName(key)) continue
    documents.push(documentOf('Key', { name: key.name, account: name }, keyValues(key)))
  }
  return documents
}

/** The document without fields that have their default. */
function documentOf(kind: string, named: JsonObject, values: JsonObject): JsonObject {
  const { labels, ...fields } = values
  const isSet = (value: unknown): boolean => {
    return value !== null && value !== false && !(isObject(value) && Object.keys(value).length === 0)
  }
  const spec = Object.fromEntries(Object.entries(fields).filter(([, value]) => isSet(value)))
  const metadata = { ...named, ...(isSet(labels) && labels !== undefined ? { labels } : {}) }
  return { kind, metadata, spec }
}
