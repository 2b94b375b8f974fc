/**
 * Finds the rules of the configuration that no account, key, label or model falls under: a mistyped name
 * limits nothing. Such a rule holds from the moment at which there is one.
 */
import { hasName } from '../accounts/account.js'
import type { Catalogue } from '../config/catalogue.js'
import type { Config, LimitConfig, RouteConfig } from '../config/config.js'
import { accountPages, keyPages } from '../store/list-all.js'
import type { Store } from '../store/store.js'
import { withoutStart } from '../gateway/routing/router.js'

/** The key of chats in the dashboard, which is in no store. */
const PLAYGROUND = 'playground'

/** What rules select that is looked for in all keys: ids, names of labels, and `NAME=VALUE`. */
interface Wanted {
  readonly keys: Set<string>
  readonly labels: Set<string>
}

/**
 * One line for each rule without a subject, with its path. `pauseMs`: after the keys of each account, so that
 * a scan of many keys delays no request. Throws `store_unavailable`.
 */
export async function unmatchedRules(
  config: Pick<Config, 'limits' | 'identity' | 'login'>,
  store: Pick<Store, 'accountById' | 'accountByName' | 'accountByEmail' | 'listAccounts' | 'listKeys'>,
  pauseMs = 0,
): Promise<string[]> {
  const { limits } = config
  const missing = wantedBy(config)
  if (missing.keys.size + missing.labels.size > 0) await findInKeys(missing, store, pauseMs)
  const lines: string[] = []
  for (const [index, rule] of limits.entries()) {
    const { account, key, value } = rule
    if (account !== null && !(await hasAccount(store, account))) {
      lines.push(
        `limits[${index}].account: no account has the name, id or e-mail address "${account}"${ADVICE}`,
      )
    }
    if (key !== null && missing.keys.has(key)) {
      lines.push(`limits[${index}].key: no account has the key "${key}"${ADVICE}`)
    }
    if (rule.scope === 'user' && config.login === null) {
      lines.push(`limits[${index}].scope: no user signs in without login.enabled${ADVICE}`)
    }
    const label = labelOf(rule)
    if (label !== null && missing.labels.has(label)) {
      const place = `limits[${index}].${value === null ? 'scope' : 'value'}`
      lines.push(`${place}: no key has the label "${label}"${ADVICE}`)
    }
  }
  return lines
}

const ADVICE = ': the rule limits nothing until there is one'

/**
 * One line for each rule for a model that no route has. Empty if an upstream has `native` endpoints, whose
 * requests may name any model.
 */
export function modelRulesWithoutRoute(
  { limits, routes, upstreams }: Pick<Config, 'limits' | 'routes' | 'upstreams'>,
  catalogue: Catalogue,
): string[] {
  if (Object.values(upstreams).some(({ native }) => native.rules.length > 0)) return []
  return limits.flatMap(({ model, prefix }, index) => {
    const [field, text] = model === null ? ['prefix', prefix] : ['model', model]
    if (text === null || routes.some((route) => mayFallUnder(route, { model, prefix }, catalogue))) return []
    const what = model === null ? `a model that starts with "${text}"` : `the model "${text}"`
    return [`limits[${index}].${field}: no route has ${what}${ADVICE}`]
  })
}

/** Whether a request of the route may fall under the rule for a model, as `find-limits.ts` decides. */
function mayFallUnder(
  { match, strip }: RouteConfig,
  { model, prefix }: Pick<LimitConfig, 'model' | 'prefix'>,
  catalogue: Catalogue,
): boolean {
  if ('model' in match) {
    const stripped = withoutStart(match.model, strip)
    const names = [match.model, stripped]
    if (prefix !== null) return names.some((name) => name.startsWith(prefix))
    return model !== null && [...names, catalogue.find(stripped)?.id].includes(model)
  }
  const start = match.prefix
  if (prefix !== null) return [prefix, strip + prefix].some((text) => fit(text, start))
  if (model === null || model === start) return true
  const isOfRoute = (id: string): boolean => id.startsWith(start) || (strip + id).startsWith(start)
  if (isOfRoute(model)) return true
  // Ids that count as the model of the catalogue: its variants, and dated ones.
  const facts = catalogue.models.find(({ id }) => id === model)
  if (facts === undefined) return false
  const ids = [model, ...(facts.variants ?? [])]
  return ids.some((id) => isOfRoute(id) || [id, strip + id].some((text) => start.startsWith(`${text}-`)))
}

/** Whether one of the texts is the start of the other. */
function fit(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one)
}

/** Whether any rule selects an account, a key, a label or users. */
export function selectsSubjects({ limits }: Pick<Config, 'limits'>): boolean {
  return limits.some((rule) => {
    return rule.account !== null || rule.key !== null || labelOf(rule) !== null || rule.scope === 'user'
  })
}

/** Workloads and programs of people have labels that are in no store; those of workloads have any value. */
function wantedBy({ limits, identity, login }: Parameters<typeof unmatchedRules>[0]): Wanted {
  const wanted: Wanted = { keys: new Set(), labels: new Set() }
  const ofWorkloads = new Set([...identity, login].flatMap((each) => Object.keys(each?.labels ?? {})))
  for (const rule of limits) {
    if (rule.key !== null && rule.key !== PLAYGROUND) wanted.keys.add(rule.key)
    const label = labelOf(rule)
    if (label !== null && !ofWorkloads.has(nameOf(label))) wanted.labels.add(label)
  }
  return wanted
}

/** `NAME=VALUE` of a rule for a label, or `NAME` of one for all values; null for other rules. */
function labelOf({ scope, value }: LimitConfig): string | null {
  if (!scope.startsWith('label:')) return null
  const name = scope.slice('label:'.length)
  return value === null ? name : `${name}=${value}`
}

function nameOf(label: string): string {
  return label.split('=', 1)[0] ?? label
}

/** Removes what a key has from the wanted, until nothing is left or all keys were read. */
async function findInKeys(
  { keys, labels }: Wanted,
  store: Pick<Store, 'listAccounts' | 'listKeys'>,
  pauseMs: number,
): Promise<void> {
  for await (const accounts of accountPages(store)) {
    for (const { id } of accounts) {
      for await (const page of keyPages(store, id)) {
        for (const key of page.filter(hasName)) {
          keys.delete(key.id)
          for (const [name, value] of Object.entries(key.labels ?? {})) {
            labels.delete(name)
            labels.delete(`${name}=${value}`)
          }
        }
        if (keys.size + labels.size === 0) return
      }
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
}

async function hasAccount(
  store: Pick<Store, 'accountById' | 'accountByName' | 'accountByEmail'>,
  account: string,
): Promise<boolean> {
  if (account.includes('@')) return (await store.accountByEmail(account)) !== null
  const found = account.includes('_') ? await store.accountById(account) : await store.accountByName(account)
  return found !== null
}
