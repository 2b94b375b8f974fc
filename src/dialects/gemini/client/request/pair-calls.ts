/**
 * Pairs the model's calls with their results: by id, or by name and order if the client keeps no ids.
 * The cost is linear in the number of calls.
 */
import type { Message, ToolCall } from '../../../../chat/request.js'
import { refuse } from '../../../../wire/json/check-fields.js'

type ToolMessage = Extract<Message, { role: 'tool' }>

/** A call and its result, which is null until it arrives. */
interface PairedCall {
  readonly call: ToolCall
  /** The call's path, for the error if it has no result. */
  readonly path: string
  readonly hasId: boolean
  result: ToolMessage | null
}

/** The calls of one turn. */
export class PairedCalls {
  private readonly all: PairedCall[] = []
  private readonly byId = new Map<string, PairedCall>()
  private readonly byName = new Map<string, Queue>()
  private readonly withoutId = new Map<string, Queue>()

  get count(): number {
    return this.all.length
  }

  /**
   * Adds a call. `hasId`: the client sent its id. Throws `malformed_request` if another call has the same id.
   */
  add(call: ToolCall, path: string, hasId: boolean): void {
    if (this.byId.has(call.id)) refuse(`${path}.id`, 'must differ from the ids of the other calls')
    const entry: PairedCall = { call, path, hasId, result: null }
    this.all.push(entry)
    this.byId.set(call.id, entry)
    enqueue(this.byName, entry)
    if (!hasId) enqueue(this.withoutId, entry)
  }

  /**
   * Assigns a result to its call, with the message that `messageFor` makes for the call's id; null if there
   * is no such call.
   */
  addResult(
    { name, id }: { name: string; id: string | undefined },
    messageFor: (callId: string) => ToolMessage,
  ): ToolMessage | null {
    const exact = id === undefined ? undefined : this.byId.get(id)
    const entry =
      exact?.hasId === true && exact.result === null
        ? exact
        : firstOpen((id === undefined ? this.byName : this.withoutId).get(name))
    if (entry === undefined) return null
    entry.result = messageFor(entry.call.id)
    return entry.result
  }

  /** The results in the order of the calls. Throws `malformed_request` for a call without one. */
  results(): ToolMessage[] {
    return this.all.map(({ result, path }) => {
      return result ?? refuse(path, 'must be followed by a functionResponse with its result')
    })
  }
}

/** Calls of one name in order; those before `next` have results. */
interface Queue {
  readonly calls: PairedCall[]
  next: number
}

function enqueue(queues: Map<string, Queue>, entry: PairedCall): void {
  const queue = queues.get(entry.call.name)
  if (queue === undefined) queues.set(entry.call.name, { calls: [entry], next: 0 })
  else queue.calls.push(entry)
}

function firstOpen(queue: Queue | undefined): PairedCall | undefined {
  if (queue === undefined) return undefined
  while (queue.calls[queue.next]?.result !== null && queue.next < queue.calls.length)
    queue.next += 1
  return queue.calls[queue.next]
}
