/** The guardrails of one generation, and those that judge a request. */
import { hasAccountOf, type Identity } from '../accounts/account.js'
import type { Config, RouteConfig } from '../config/config.js'
import type { AppliedTo, GuardrailConfig } from '../config/schema/guardrails-schema.js'
import type { GuardMetrics } from './guard-notes.js'
import { GuardServer } from './guard-server.js'
import { GuardBreaker, Guardrail, type Judge } from './guardrail.js'
import type { Plugins } from './plugins.js'

/** The key and account of a request. */
interface GuardedKey extends Pick<Identity, 'accountId' | 'email' | 'accountPath'> {
  readonly labels: Readonly<Record<string, string>>
}

/** Null if the configuration has no guardrails. */
export function policyOf(config: Config, metrics: GuardMetrics, plugins: Plugins | null): Policy | null {
  return config.guardrails.length === 0 ? null : new Policy(config, metrics, plugins)
}

const NONE: readonly Guardrail[] = []

/** The guardrails of a configuration. */
export class Policy {
  private readonly byName: ReadonlyMap<string, Guardrail>
  /** Those with `apply_to`, in file order. */
  private readonly applied: readonly Guardrail[]

  constructor({ guardrails }: Config, metrics: GuardMetrics, plugins: Plugins | null) {
    this.byName = new Map(
      guardrails.map((config) => {
        const breaker = new GuardBreaker(config.breaker, (state) => metrics.breaker(config.name, state))
        return [config.name, new Guardrail(config, judgeOf(config, plugins), breaker)]
      }),
    )
    this.applied = [...this.byName.values()].filter(({ config }) => config.applyTo !== null)
  }

  /**
   * The guardrails of a request in order: those that the route or the upstream names, then those with
   * `apply_to` for the key; each once.
   */
  of(names: RouteConfig['guardrails'], key: GuardedKey): readonly Guardrail[] {
    if (names.length === 0 && this.applied.length === 0) return NONE
    const named = this.named(names)
    const applied = this.applied.filter(
      (guardrail) => !named.includes(guardrail) && applies(guardrail.config, key),
    )
    return applied.length === 0 ? named : [...named, ...applied]
  }

  /** The guardrails of these names in order. */
  named(names: readonly string[]): readonly Guardrail[] {
    return names.flatMap((name) => this.byName.get(name) ?? [])
  }

  async close(): Promise<void> {
    await Promise.all([...this.byName.values()].map((guardrail) => guardrail.close()))
  }
}

function judgeOf(config: GuardrailConfig, plugins: Plugins | null): Judge | null {
  const { source } = config
  if (source.kind === 'server') return new GuardServer(config, source)
  return source.kind === 'plugin' ? (plugins?.judge(config, source.plugin) ?? null) : null
}

function applies({ applyTo }: GuardrailConfig, key: GuardedKey): boolean {
  return applyTo !== null && isFor(applyTo, key)
}

function isFor(applyTo: AppliedTo, key: GuardedKey): boolean {
  if ('all' in applyTo) return true
  if ('labels' in applyTo) {
    const { labels } = key
    return Object.entries(applyTo.labels).every(
      ([name, value]) => Object.hasOwn(labels, name) && labels[name] === value,
    )
  }
  return hasAccountOf(applyTo.accounts, key)
}
