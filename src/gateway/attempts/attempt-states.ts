/**
 * The states of an attempt, the events that change them, and the timeout that runs in each: the diagram in
 * `docs/explanation/life-of-a-request.md` is generated from these tables. Pure.
 */

/** A timeout of a state. `linger`: for the end of a body after its terminator. */
export type StateTimeout = 'connect' | 'first byte' | 'idle' | 'linger'

interface StateOf {
  readonly means: string
  /** Null: none. The deadline of the whole attempt runs in every state but the last two. */
  readonly timeout: StateTimeout | null
  /** What a connection that fails in this state had done. */
  readonly progress: 'connecting' | 'sent' | 'in reply'
}

/** The states, in the order in which an attempt has them. */
export const ATTEMPT_STATES = {
  connecting: { means: 'it waits for a connection', timeout: 'connect', progress: 'connecting' },
  waiting: { means: 'the request is sent, and has no reply', timeout: 'first byte', progress: 'sent' },
  error: { means: 'the body of an error arrives', timeout: 'idle', progress: 'in reply' },
  whole: { means: 'the body of a whole reply arrives', timeout: 'idle', progress: 'in reply' },
  stream: { means: 'the events of a reply arrive', timeout: 'idle', progress: 'in reply' },
  lingering: {
    means: 'the reply is complete, and its body has not ended',
    timeout: 'linger',
    progress: 'in reply',
  },
  over: { means: 'it has its result, and no connection', timeout: null, progress: 'in reply' },
} as const satisfies Readonly<Record<string, StateOf>>
/** One of them. */
export type AttemptState = keyof typeof ATTEMPT_STATES

/** The events, with what they mean. */
export const ATTEMPT_EVENTS = {
  sent: 'a connection takes the request',
  refused: 'a head with a status other than 200, or first bytes that are no reply',
  body: 'the reply is one body',
  events: 'the reply is a stream of events',
  complete: 'the terminator of the stream, or a pause',
  end: 'every end: of the body, by a failure, a timeout, the client or a faster attempt',
} as const
/** One of them. */
export type AttemptEvent = keyof typeof ATTEMPT_EVENTS

/**
 * The state after an event. The first bytes of a reply may show another form than its content type, so that
 * a body becomes a stream or the other way round.
 */
export const ATTEMPT_TABLE: Readonly<
  Record<AttemptState, Readonly<Partial<Record<AttemptEvent, AttemptState>>>>
> = {
  connecting: { sent: 'waiting', end: 'over' },
  waiting: { refused: 'error', body: 'whole', events: 'stream', end: 'over' },
  error: { end: 'over' },
  whole: { refused: 'error', events: 'stream', end: 'over' },
  stream: { refused: 'error', body: 'whole', complete: 'lingering', end: 'over' },
  lingering: { end: 'over' },
  over: {},
}

/** The state after an event; one that the table does not have changes nothing. */
export function stateAfter(state: AttemptState, event: AttemptEvent): AttemptState {
  return ATTEMPT_TABLE[state][event] ?? state
}
