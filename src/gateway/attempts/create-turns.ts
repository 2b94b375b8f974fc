/** Creates the turns of the candidates of one request, in order. */
import type { Candidate } from '../phases/choose-route.js'
import { CandidateQueue } from './candidate-queue.js'
import type { UpstreamState } from './health/upstream-state.js'
import type { Hedging } from './hedge/start-hedge.js'
import { CandidateTurn } from './candidate-turn.js'
import type { SendOptions } from './send-options.js'

/** Creates each turn when the loop reaches its candidate. */
export class CandidateTurns {
  private readonly queue: CandidateQueue<Candidate>
  private readonly states: SendOptions['states']
  private readonly stickyKey: string | null

  constructor(
    candidates: readonly Candidate[],
    states: SendOptions['states'],
    stickyKey: string | null,
  ) {
    this.queue = new CandidateQueue(candidates, (candidate) => this.stateOf(candidate).breaker)
    this.states = states
    this.stickyKey = stickyKey
  }

  /** The next candidate that its breaker allows; null if there is none. */
  next(): CandidateTurn | null {
    const candidate = this.queue.take()
    return candidate === null ? null : this.turnOn(candidate, null)
  }

  /** A hedge beside the attempts of `late`; null if the route's hedge budget does not allow one. */
  beside(late: CandidateTurn, hedging: Hedging): CandidateTurn | null {
    const target = hedging.target(late.candidate)
    if (target === null) return null
    this.queue.remove(target)
    return this.turnOn(target, late)
  }

  private turnOn(candidate: Candidate, beside: CandidateTurn | null): CandidateTurn {
    const { clock } = this.states
    const { stickyKey } = this
    return new CandidateTurn({
      candidate,
      state: this.stateOf(candidate),
      clock,
      stickyKey,
      beside,
    })
  }

  private stateOf({ target }: Candidate): UpstreamState {
    return this.states.of(target.upstream.config.name)
  }
}
