/**
 * An answer that is read on after its client has left, for the counts at its end: how long, and whether
 * they have come. Knows no socket.
 */
import { NOTHING_SAID } from '../chat/said.js'
import type { Usage } from '../chat/usage.js'
import { outputTokens } from '../ledger/estimate.js'
import type { Exchange } from './exchange.js'
import type { Target } from './generation.js'
import type { Verdict } from './translate.js'

/** The rest of one answer. The exchange waits for its end. */
export class Leftover {
  private readonly x: Exchange
  private readonly untilUsage: boolean
  private readonly lateMs: number
  /** What was reported when the client left. */
  private readonly usage: Usage | null
  private resolve: () => void = () => undefined

  /** Null where the configuration has the upstream cancelled, or as many are read on as may be. */
  static of(x: Exchange, target: Target): Leftover | null {
    const { onDisconnect } = target.upstream.config
    const { maxStreams } = x.generation.snapshot.config.afterDisconnect
    if (onDisconnect === 'cancel' || !x.after.drains.enter(maxStreams)) return null
    return new Leftover(x, onDisconnect === 'drain_until_usage')
  }

  private constructor(x: Exchange, untilUsage: boolean) {
    const { facts, generation } = x
    this.x = x
    this.untilUsage = untilUsage
    this.lateMs = performance.now() + generation.snapshot.config.afterDisconnect.maxMs
    this.usage = facts.verdict?.usage ?? null
    const { family } = generation.facts(facts.upstreamModel ?? '')
    facts.outputWhenLeft = outputTokens(facts.verdict?.said ?? NOTHING_SAID, family)
    x.draining = new Promise((resolve) => {
      this.resolve = resolve
    })
  }

  /** Whether it has been read on for as long as may be. */
  isLate(nowMs: number): boolean {
    return nowMs > this.lateMs
  }

  /** Whether counts have come since the client left, and no more than that is wanted. */
  isCounted({ usage, said }: Verdict): boolean {
    if (!this.untilUsage || usage === this.usage || said.bytes + said.calls === 0) return false
    return usage.input !== undefined && usage.output !== undefined
  }

  /** The attempt is over. */
  end(): void {
    this.x.after.drains.leave()
    this.resolve()
  }
}
