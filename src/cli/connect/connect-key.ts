/** The settings of a client for a key that `sluice keys create` has made. */
import type { Account, ApiKey } from '../../accounts/account.js'
import { allowedModelsFilter } from '../../accounts/allowed-models.js'
import { resultOfLookup } from '../../accounts/authentication/authentication-result.js'
import { KEY_ENV, type Client } from '../../config/client-settings.js'
import { limitsMoney, Rules } from '../../limits/find-limits.js'
import type { StoreSession } from '../with-store.js'
import { clientText } from '../../config/connect/client-text.js'
import { gatewayUrl } from './connect.js'
import { conversing, exampleModels, type ClientModels } from '../../config/connect/key-models.js'

/** The text of `sluice connect` with the models that the key may use. */
export async function connectText(
  session: StoreSession,
  client: Client,
  { key, account }: { readonly key: ApiKey; readonly account: Account },
): Promise<string> {
  const models = modelsOf(session, client, key)
  const url = gatewayUrl(session.gateway)
  const hasBudget = await isUnderBudget(session, { key, account, model: models[0].id })
  return clientText(client, { url, keyEnv: KEY_ENV, models, hasBudget })
}

function modelsOf({ models, gateway }: StoreSession, client: Client, key: ApiKey): ClientModels {
  const isAllowed = allowedModelsFilter(key.models ?? null)
  const named = (key.models ?? []).filter((model) => !model.endsWith('*') && !model.includes(':'))
  const known = models.filter((model) => !model.endsWith('*') && isAllowed(model))
  const ids = [...new Set([...named, ...known])]
  return conversing(client, ids, gateway.catalogue) ?? exampleModels(client, gateway.catalogue)
}

/** Whether a limit in dollars applies to requests of the key for this model. */
async function isUnderBudget(
  { store, upstreams, gateway }: StoreSession,
  { key, account, model }: { readonly key: ApiKey; readonly account: Account; readonly model: string },
): Promise<boolean> {
  const ancestors = await store.ancestorsOf(account)
  const result = resultOfLookup(key.digest, { key, account, ancestors })
  if (!result.good) return false
  const rules = new Rules(gateway)
  const { identity } = result
  const names = { model, strippedModel: model, modelName: model }
  const ofUpstreams = ['', ...upstreams].flatMap((upstream) => rules.of({ identity, ...names, upstream }))
  return ofUpstreams.some(({ amounts }) => limitsMoney(amounts))
}
