/** Compares two catalogues: models, prices, limits and other facts. */
import { isObject, objectOf, type JsonObject, type JsonValue } from '../../chat/json.js'
import type { ModelFacts } from '../../chat/model.js'
import { snakeKeys } from '../../config/masked-config.js'

/** The kind of a change. */
export type ChangeKind = 'price' | 'limit' | 'fact'

/** A fact of a model that differs; `null` if the catalogue lacks it. */
export interface FactChange {
  readonly model: string
  readonly kind: ChangeKind
  /** In the spelling of `models.yaml`: `price.long_context.input`. */
  readonly fact: string
  readonly shipped: JsonValue
  readonly own: JsonValue
}

/** The difference between the shipped catalogue and another one. */
export interface CatalogueDiff {
  /** Ids that only the other catalogue has. */
  readonly added: readonly string[]
  /** Ids that only the shipped catalogue has. */
  readonly removed: readonly string[]
  readonly changed: readonly FactChange[]
}

const LIMITS = new Set(['context_window', 'max_output_tokens', 'max_output_tokens_whole'])

/** In file order: first the models of `own`, then those that it lacks. */
export function catalogueDiff(
  shipped: readonly ModelFacts[],
  own: readonly ModelFacts[],
): CatalogueDiff {
  const known = new Map(shipped.map((facts) => [facts.id, facts]))
  const ids = new Set(own.map(({ id }) => id))
  return {
    added: own.filter(({ id }) => !known.has(id)).map(({ id }) => id),
    removed: shipped.filter(({ id }) => !ids.has(id)).map(({ id }) => id),
    changed: own.flatMap((facts) => {
      const before = known.get(facts.id)
      return before === undefined ? [] : changesOf(before, facts)
    }),
  }
}

function changesOf(shipped: ModelFacts, own: ModelFacts): FactChange[] {
  const [before, after] = [leavesOf(shipped), leavesOf(own)]
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].flatMap((fact) => {
    const [one, other] = [before.get(fact) ?? null, after.get(fact) ?? null]
    if (JSON.stringify(one) === JSON.stringify(other)) return []
    return [{ model: own.id, kind: kindOf(fact), fact, shipped: one, own: other }]
  })
}

function kindOf(fact: string): ChangeKind {
  if (fact.startsWith('price.')) return 'price'
  return LIMITS.has(fact) ? 'limit' : 'fact'
}

/** The facts by path. Lists are one value. The release date is omitted: its default is the file's `as_of`. */
function leavesOf(facts: ModelFacts): Map<string, JsonValue> {
  const leaves = new Map<string, JsonValue>()
  gather(objectOf(snakeKeys(facts)), '', leaves)
  leaves.delete('id')
  leaves.delete('created_at_seconds')
  return leaves
}

function gather(object: JsonObject, path: string, leaves: Map<string, JsonValue>): void {
  for (const [name, value] of Object.entries(object)) {
    if (value === undefined) continue
    const inner = path === '' ? name : `${path}.${name}`
    if (isObject(value)) gather(value, inner, leaves)
    else leaves.set(inner, value)
  }
}
