/**
 * The upstreams of an import: one for each distinct set of vendor, address, credential, headers, timeouts and
 * forced members, named after the preset or dialect, then `-2`, `-3` in the order of the file.
 */
import type { JsonObject } from '../../../base/json.js'

/** An upstream that deployments share. */
interface ImportedUpstream {
  readonly name: string
  /** The keys of the new configuration. */
  readonly values: JsonObject
  /** The variables that its credentials need. */
  readonly variables: readonly string[]
  /** Azure: the deployment of each model. */
  readonly deployments: Map<string, string>
  /** Prices by model, in dollars per million tokens. */
  readonly prices: Map<string, JsonObject>
  /** Facts of models that the catalogue may lack. */
  readonly models: Map<string, JsonObject>
}

/** What a deployment needs of its upstream. */
interface WantedUpstream {
  /** The start of its name. */
  readonly label: string
  readonly values: JsonObject
  readonly variables: readonly string[]
  readonly model: string | null
  /** Azure: the deployment of the model. */
  readonly deployment: string | null
  readonly price: JsonObject | null
}

/** Finds and names upstreams. */
export class ImportedUpstreams {
  readonly all: ImportedUpstream[] = []

  /** The upstream with these values; a new one if none has them, or one with another price for the model. */
  for(wanted: WantedUpstream): ImportedUpstream {
    const key = keyOf(wanted.values)
    const known = this.all.find((each) => keyOf(each.values) === key && fits(each, wanted))
    const found = known ?? this.add(wanted)
    const { model, deployment, price } = wanted
    if (model !== null && deployment !== null) found.deployments.set(model, deployment)
    if (model !== null && price !== null) found.prices.set(model, price)
    return found
  }

  /** The section `upstreams`. */
  section(): JsonObject {
    return Object.fromEntries(this.all.map((each) => [each.name, valuesOf(each)]))
  }

  private add({ label, values, variables }: WantedUpstream): ImportedUpstream {
    const names = new Set(this.all.map(({ name }) => name))
    let name = label
    for (let number = 2; names.has(name); number += 1) name = `${label}-${number}`
    const added = {
      ...{ name, values, variables },
      deployments: new Map<string, string>(),
      prices: new Map<string, JsonObject>(),
      models: new Map<string, JsonObject>(),
    }
    this.all.push(added)
    return added
  }
}

function fits(upstream: ImportedUpstream, { model, deployment, price }: WantedUpstream): boolean {
  if (model === null) return true
  const usedDeployment = upstream.deployments.get(model)
  if (deployment !== null && usedDeployment !== undefined && usedDeployment !== deployment) return false
  const usedPrice = upstream.prices.get(model)
  return price === null || usedPrice === undefined || keyOf(usedPrice) === keyOf(price)
}

function keyOf(values: JsonObject): string {
  return JSON.stringify(values)
}

function valuesOf({ values, deployments, prices, models }: ImportedUpstream): JsonObject {
  const renamed = [...deployments].filter(([model, deployment]) => model !== deployment)
  return {
    ...values,
    ...(renamed.length === 0 ? {} : { deployments: Object.fromEntries(renamed) }),
    ...(prices.size === 0 ? {} : { prices: Object.fromEntries(prices) }),
    ...(models.size === 0 ? {} : { models: [...models].map(([id, facts]) => ({ id, ...facts })) }),
  }
}
