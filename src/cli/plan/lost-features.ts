/**
 * Features that clients lose when a model moves to an upstream of another dialect, for a plan without
 * recorded requests.
 */
import { notCarried } from '../explain/explain-route.js'
import { dialectsByRequest } from '../../upstreams/explain-dialect.js'
import type { Move } from './compare-configs.js'
import type { FlowTarget } from './moved-shares.js'
import type { ComparedConfig } from './compared-config.js'

/** Features that a move removes for chat clients, for all models with the same move. */
export interface Capability {
  readonly models: readonly string[]
  readonly to_upstream: string
  readonly dialect: string
  /** Dropped and reported by the new upstream, and not by the current one. */
  readonly loses: readonly string[]
  /** Refused with 400 by the new upstream, and not by the current one. */
  readonly refuses: readonly string[]
}

/** The features that moves remove; moves without any are omitted. */
export function capabilitiesOf(
  moves: readonly Move[],
  before: ComparedConfig,
  after: ComparedConfig,
): Capability[] {
  const found = new Map<string, { models: string[]; row: Omit<Capability, 'models'> }>()
  for (const { model, from, to } of moves) {
    if (from === null || to === null) continue
    const [old, now] = [carriedBy(from, before), carriedBy(to, after)]
    const loses = now.loses.filter((name) => ![...old.loses, ...old.refuses].includes(name))
    const refuses = now.refuses.filter((name) => !old.refuses.includes(name))
    if (loses.length === 0 && refuses.length === 0) continue
    const row = { to_upstream: to.upstream, dialect: now.dialect, loses, refuses }
    const name = JSON.stringify(row)
    const known = found.get(name)
    if (known === undefined) found.set(name, { models: [model], row })
    else if (!known.models.includes(model)) known.models.push(model)
  }
  return [...found.values()].map(({ models, row }) => ({ models, ...row }))
}

function carriedBy(
  { upstream, model }: FlowTarget,
  side: ComparedConfig,
): { dialect: string; loses: string[]; refuses: string[] } {
  const config = side.config.upstreams[upstream]
  if (config === undefined) throw new Error(`no upstream ${upstream}`)
  const facts = side.facts(model)
  const { plain: dialect } = dialectsByRequest(config, facts)
  return { dialect, ...notCarried(dialect, facts, side.catalogue) }
}
