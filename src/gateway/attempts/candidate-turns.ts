/** The turns of the candidates of one request, in order. */
import type { Candidate } from '../phases/choose.js'
import { CandidateQueue } from './candidate-queue.js'
import type { UpstreamState } from './health/upstream-state.js'
import type { Hedging } from './hedge/hedging.js'
import { Leg } from './candidate-turn.js'
import type { Sending } from './send-options.js'

/** Makes each candidate's leg when its turn comes. */
export class Legs {
  private readonly queue: CandidateQueue<Candidate>
  private readonly states: Sending['states']
  private readonly stickyKey: string | null

  constructor(
    candidates: readonly Candidate[],
    states: Sending['states'],
    stickyKey: string | null,
  ) {
    this.queue = new CandidateQueue(candidates, (each) => this.stateOf(each).breaker)
    this.states = states
    this.stickyKey = stickyKey
  }

  /** The next candidate that its breaker allows; null if there is none. */
  next(): Leg | null {
    const candidate = this.queue.take()
    return candidate === null ? null : this.legOn(candidate, null)
  }

  /** A hedge of the attempts of `late`; null if its spending does not allow one. */
  beside(late: Leg, hedging: Hedging): Leg | null {
    const target = hedging.target(late.candidate)
    if (target === null) return null
    this.queue.remove(target)
    return this.legOn(target, late)
  }

  private legOn(candidate: Candidate, beside: Leg | null): Leg {
    const { clock } = this.states
    const { stickyKey } = this
    return new Leg({ candidate, state: this.stateOf(candidate), clock, stickyKey, beside })
  }

  private stateOf({ target }: Candidate): UpstreamState {
    return this.states.of(target.upstream.config.name)
  }
}
