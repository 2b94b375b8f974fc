/**
 * Pairs the model's calls with their results: by id, and by name and order where the client keeps no ids.
 * Each call is looked at a bounded number of times, however many there are.
 */
import type { Message, ToolCall } from '../../../../chat/request.js'
import { refuse } from '../../../../wire/json/check-fields.js'

type ToolMessage = Extract<Message, { role: 'tool' }>

/** A call that waits for its result. */
interface Waiting {
  readonly call: ToolCall
  /** The call’s own path, for the error if it gets no result. */
  readonly path: string
  readonly hasId: boolean
  result: ToolMessage | null
}

/** The calls of one turn. */
export class PairedCalls {
  private readonly all: Waiting[] = []
  private readonly byId = new Map<string, Waiting>()
  private readonly byName = new Map<string, Queue>()
  private readonly withoutId = new Map<string, Queue>()

  get count(): number {
    return this.all.length
  }

  /** `hasId`: the client gave the id, or brought it back. Two calls of a turn never share one. */
  add(call: ToolCall, path: string, hasId: boolean): void {
    if (this.byId.has(call.id)) refuse(`${path}.id`, 'must differ from the other calls’ ids')
    const waiting: Waiting = { call, path, hasId, result: null }
    this.all.push(waiting)
    this.byId.set(call.id, waiting)
    queued(this.byName, waiting)
    if (!hasId) queued(this.withoutId, waiting)
  }

  /** The call that a result answers; null if there is none. `answer` makes the message for its id. */
  answer(
    { name, id }: { name: string; id: string | undefined },
    answer: (callId: string) => ToolMessage,
  ): ToolMessage | null {
    const exact = id === undefined ? undefined : this.byId.get(id)
    const waiting =
      exact?.hasId === true && exact.result === null
        ? exact
        : firstOpen((id === undefined ? this.byName : this.withoutId).get(name))
    if (waiting === undefined) return null
    waiting.result = answer(waiting.call.id)
    return waiting.result
  }

  /** The results in the order of the calls. Throws `malformed_request` for a call without one. */
  results(): ToolMessage[] {
    return this.all.map(({ result, path }) => {
      return result ?? refuse(path, 'must be followed by a functionResponse with its result')
    })
  }
}

/** Calls of one name in their order; those before `next` have their results. */
interface Queue {
  readonly calls: Waiting[]
  next: number
}

function queued(queues: Map<string, Queue>, waiting: Waiting): void {
  const queue = queues.get(waiting.call.name)
  if (queue === undefined) queues.set(waiting.call.name, { calls: [waiting], next: 0 })
  else queue.calls.push(waiting)
}

function firstOpen(queue: Queue | undefined): Waiting | undefined {
  if (queue === undefined) return undefined
  while (queue.calls[queue.next]?.result !== null && queue.next < queue.calls.length)
    queue.next += 1
  return queue.calls[queue.next]
}
