/** What clients may ask for and lose when a model moves to an upstream of another dialect: for a plan without requests. */
import { notCarried } from '../explain/explain-route.js'
import { dialectsByRequest } from '../../upstreams/explain-dialect.js'
import type { Move } from './compare.js'
import type { FlowTarget } from './flows.js'
import type { ComparedConfig } from './compared-config.js'

/** What a move takes away from chat clients, for all models that move so. */
export interface Capability {
  readonly models: readonly string[]
  readonly to_upstream: string
  readonly dialect: string
  /** Dropped and reported there, and not at the present upstream. */
  readonly loses: readonly string[]
  /** Refused with 400 there, and not at the present upstream. */
  readonly refuses: readonly string[]
}

/** The capabilities that moves take away; moves without any are left out. */
export function capabilitiesOf(
  moves: readonly Move[],
  before: ComparedConfig,
  after: ComparedConfig,
): Capability[] {
  const found = new Map<string, { models: string[]; row: Omit<Capability, 'models'> }>()
  for (const { model, from, to } of moves) {
    if (from === null || to === null) continue
    const [old, now] = [carriedAt(from, before), carriedAt(to, after)]
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

function carriedAt(
  { upstream, model }: FlowTarget,
  side: ComparedConfig,
): { dialect: string; loses: string[]; refuses: string[] } {
  const config = side.config.upstreams[upstream]
  if (config === undefined) throw new Error(`no upstream ${upstream}`)
  const facts = side.facts(model)
  const { plain: dialect } = dialectsByRequest(config, facts)
  return { dialect, ...notCarried(dialect, facts, side.catalogue) }
}
