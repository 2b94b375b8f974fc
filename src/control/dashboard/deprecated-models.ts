/** Models with an announced end: who still uses them, and what to use instead. */
import { DAY_MS } from '../../base/time-units.js'
import type { Snapshot } from '../../config/config.js'
import type { ModelFacts } from '../../formats/chat/model-facts.js'
import type { GroupUse } from '../../store/usage-queries.js'
import type * as schema from './schema/schema.js'
import type { ExactUsage } from '../../usage/exact-usage.js'
import { PLAYGROUND, usageIn, type Services } from '../services.js'
import { groupsIn } from '../../usage/usage-groups.js'

/** Keys, accounts and labels in the reply for a model. */
const MOST_USERS = 50

/** The ids of the catalogue's models that have one, as the ledger counts them. */
export function endingModels({ catalogue }: Snapshot): string[] {
  return catalogue.models.filter(isEnding).map(({ id }) => id)
}

function isEnding({ shutdownDate }: ModelFacts): boolean {
  return shutdownDate !== undefined
}

/** The models in the order of their ends, with their use in the last 30 days. */
export async function deprecatedModels(
  services: Services,
  accountId: string | null,
): Promise<schema.Sent<typeof schema.deprecatedReply>> {
  const { catalogue } = services.snapshot()
  const usage = await usageIn(services, { range: '30d' })
  const { fromMs, toMs } = usage.range
  const used = new Map<string, GroupUse>()
  for (const use of await usage.groups({ accountId, by: 'model' })) {
    used.set(use.keyId, use)
  }
  const ending = catalogue.models.filter(isEnding)
  ending.sort((a, b) => ((a.shutdownDate ?? '') < (b.shutdownDate ?? '') ? -1 : 1))
  const models: schema.Sent<typeof schema.deprecatedModel>[] = []
  for (const facts of ending) {
    const use = used.get(facts.id)
    const users =
      use === undefined ? NO_USERS : await usersOf(services, usage, { accountId, model: facts.id })
    models.push({
      id: facts.id,
      family: facts.family,
      endsOn: facts.shutdownDate ?? '',
      successor: successorOf(facts, catalogue.models),
      requests: use?.requests ?? 0,
      costNanoUsd: use?.costNanoUsd ?? 0,
      ...users,
    })
  }
  return { fromMs, toMs, models }
}

type Users = Pick<
  schema.Sent<typeof schema.deprecatedModel>,
  'requestsPerDay' | 'days' | 'keys' | 'keyCount' | 'accounts' | 'labels'
>
const NO_USERS: Users = {
  ...{ requestsPerDay: 0, days: [], keys: [], keyCount: 0, accounts: [], labels: [] },
}

async function usersOf(
  services: Services,
  usage: ExactUsage,
  query: { accountId: string | null; model: string },
): Promise<Users> {
  const { store } = services
  const { toMs } = usage.range
  const [keys, accounts, labels, sums] = await Promise.all([
    usage.groups({ ...query, by: 'key' }),
    groupsIn(services, usage, { ...query, group: 'account' }),
    usage.groups({ ...query, by: 'label' }),
    usage.sums({ ...query, per: 'model' }),
  ])
  const days = sums.map(({ startMs, requests }) => ({ startMs, requests }))
  const requests = days.reduce((sum, day) => sum + day.requests, 0)
  const since = days[0] === undefined ? toMs : days[0].startMs
  const largest = keys.sort(byRequests).slice(0, MOST_USERS)
  return {
    requestsPerDay: requests / Math.max(1, Math.round((toMs - since) / DAY_MS)),
    days,
    keyCount: keys.length,
    keys: await Promise.all(
      largest.map(async ({ accountId: owner, keyId, ...use }) => ({
        ...{ id: keyId, accountId: owner },
        name: keyId === PLAYGROUND ? keyId : ((await store.keyById(owner, keyId))?.name ?? keyId),
        accountName: (await store.accountById(owner))?.name ?? null,
        ...useView(use),
      })),
    ),
    accounts: accounts
      .map(({ id, total }) => ({ name: id, ...useView(total) }))
      .sort(byRequests)
      .slice(0, MOST_USERS),
    labels: labels
      .map(({ keyId, ...use }) => ({ label: keyId, ...useView(use) }))
      .sort(byRequests)
      .slice(0, MOST_USERS),
  }
}

function useView({ requests, costNanoUsd }: Pick<GroupUse, 'requests' | 'costNanoUsd'>) {
  return { requests, costNanoUsd }
}

function byRequests(a: { readonly requests: number }, b: { readonly requests: number }): number {
  return b.requests - a.requests
}

/** Abilities that a successor must have if the model has them. */
const ABILITIES = ['vision', 'audioInput', 'tools', 'reasoning', 'structuredOutput'] as const

/**
 * The newest model of the same maker that has the abilities and no announced end: one of the same size
 * (`mini`, `haiku`) if there is one.
 */
export function successorOf(old: ModelFacts, models: readonly ModelFacts[]): string | null {
  const fit = models.filter((model) => {
    const isNewer = model.createdAtSeconds > old.createdAtSeconds
    const isOfKind = model.family === old.family && isEmbedding(model) === isEmbedding(old)
    return (
      isNewer &&
      isOfKind &&
      !isEnding(model) &&
      ABILITIES.every((ability) => old[ability] !== true || model[ability] === true)
    )
  })
  const sameSize = fit.filter(({ id }) => sizeOf(id) === sizeOf(old.id))
  const newest = (sameSize.length > 0 ? sameSize : fit).sort(
    (a, b) => b.createdAtSeconds - a.createdAtSeconds || (a.id < b.id ? -1 : 1),
  )
  return newest[0]?.id ?? null
}

/** Embedding models produce no tokens. */
function isEmbedding({ maxOutputTokens }: ModelFacts): boolean {
  return maxOutputTokens === 0
}

/** The words of an id without versions: `gpt mini`. */
function sizeOf(id: string): string {
  const words = id.split(/[^a-z]+/i).filter((word) => word.length > 1)
  return words.sort().join(' ')
}
