/**
 * The turns of a conversation with one model or two. Each reply has its own end, failure and calls of tools;
 * running one again does not affect the others.
 */
import { useEffect, useRef, useState } from 'react'
import { chat, type Chat, type CallPart, type Fragment } from '../../api/chat.js'
import { problemOf } from '../../api/client.js'
import { announce } from '../../components/notices.js'
import type { Format } from '../../format/request-formats.js'
import {
  requestIn,
  type Message,
  type PlaygroundRequest,
  type ToolCall,
  type ToolResult,
} from './request-body.js'
import { keep, kept } from './kept-state.js'
import { schemaIn, toolsIn } from './tools.js'
import type { Draft, Reply, Settings, Turn } from './turns.js'

/** How to run a turn; one or two models. */
export interface Run {
  readonly models: readonly string[]
  readonly format: Format
  readonly settings: Settings
}

/** A conversation and its actions. */
export interface Conversation {
  readonly turns: readonly Turn[]
  readonly isRunning: boolean
  readonly send: (asked: Draft, run: Run) => void
  /** Answers the calls of a reply. */
  readonly answer: (reply: Reply, results: readonly ToolResult[], run: Run) => void
  /** Runs one turn again, with the turns before it; later turns are unchanged. */
  readonly rerun: (id: string, run: Run) => void
  /** Changes the message of a turn without sending it. */
  readonly edit: (id: string, text: string) => void
  readonly remove: (id: string) => void
  readonly stop: () => void
  readonly clear: () => void
}

/** The request for a message after these turns, to the model of a column. */
export function requestFor(
  { system, temperature, maxTokens, ...json }: Settings,
  turns: readonly Turn[],
  column: number,
): PlaygroundRequest {
  const [tools, schema] = [toolsIn(json.tools), schemaIn(json.schema)]
  return {
    system,
    messages: messagesOf(turns, column),
    temperature: temperature === '' ? undefined : Number(temperature),
    maxTokens: maxTokens === '' ? undefined : Number(maxTokens),
    tools: 'value' in tools ? tools.value : [],
    schema: 'value' in schema ? schema.value : null,
  }
}

/**
 * The messages of a column; the last turn is the one to reply to. Turns without a reply are omitted, and
 * calls without results, since providers refuse them.
 */
function messagesOf(turns: readonly Turn[], column: number): Message[] {
  const own = turns.filter((turn, at) => at === turns.length - 1 || replyIn(turn, column) !== null)
  return own.flatMap((turn, at): Message[] => {
    const { asked, results } = turn
    const question: Message = results.length > 0 ? { role: 'tool', results } : { role: 'user', ...asked }
    if (at === own.length - 1) return [question]
    const answered = own[at + 1]?.results.map(({ call }) => call.id) ?? []
    const reply = replyIn(turn, column)
    const calls = (reply?.calls ?? []).filter(({ id }) => answered.includes(id))
    if (reply === null || (reply.text === '' && calls.length === 0)) return []
    return [question, { role: 'assistant', text: reply.text, calls }]
  })
}

/** The reply in a column; of a turn with one model its only one, unless it continues the other column. */
function replyIn({ replies, results }: Turn, column: number): Reply | null {
  const own = replies.find((reply) => reply.column === column)
  if (own !== undefined) return own
  return results.length > 0 ? null : (replies[0] ?? null)
}

type SetTurns = (edit: (turns: readonly Turn[]) => readonly Turn[]) => void

interface Runs {
  /** Starts the replies of a turn after others. */
  readonly start: (turn: Turn, before: readonly Turn[], settings: Settings) => void
  readonly stop: () => void
}

/** Runs requests, which write into their replies. They are stopped when the page is left. */
function useRuns(setTurns: SetTurns): Runs {
  const going = useRef(new Map<string, AbortController>())
  const stop = (): void => {
    for (const each of going.current.values()) each.abort()
  }
  useEffect(() => stop, [])
  const change = (id: string, edit: (reply: Reply) => Partial<Reply>): void => {
    setTurns((all) => all.map((turn) => withReply(turn, id, edit)))
  }
  const run = async ({ id, model }: Reply, { format, body }: Pick<Chat, 'format' | 'body'>) => {
    const gone = new AbortController()
    going.current.set(id, gone)
    try {
      const ended = await chat(
        { format, model, body, clientRequestId: id },
        {
          signal: gone.signal,
          onHead: (requestId) => change(id, () => ({ requestId })),
          onFragment: (fragment) => change(id, (now) => grown(now, fragment)),
        },
      )
      change(id, () => ({ ended, isRunning: false }))
      announce('The reply is complete.')
    } catch (error) {
      const how = gone.signal.aborted ? { isStopped: true } : { problem: problemOf(error) }
      change(id, () => ({ ...how, isRunning: false }))
    } finally {
      going.current.delete(id)
    }
  }
  return {
    stop,
    start: (turn, before, settings) => {
      for (const reply of turn.replies) {
        const request = requestFor(settings, [...before, turn], reply.column)
        const target = { base: '', model: reply.model, key: '' }
        void run(reply, { format: turn.format, body: requestIn(turn.format, target, request).body })
      }
    },
  }
}

/** A conversation; the one before a reload, or an empty one. */
export function useConversation(user: string): Conversation {
  const [turns, setTurns] = useState<readonly Turn[]>(() => endedTurns(kept(user).turns))
  useEffect(() => keep(user, { turns }), [user, turns])
  const { start, stop } = useRuns(setTurns)
  return {
    turns,
    isRunning: turns.some(({ replies }) => replies.some(({ isRunning }) => isRunning)),
    send: (asked, { models, format, settings }) => {
      const replies = models.map((model, column) => newReply({ model, column }, settings))
      const turn = newTurn({ format, asked, replies })
      setTurns([...turns, turn])
      start(turn, turns, settings)
    },
    answer: ({ column, model }, results, { format, settings }) => {
      const replies = [newReply({ model, column }, settings)]
      const turn = { ...newTurn({ format, asked: NOTHING, replies }), results }
      setTurns([...turns, turn])
      start(turn, turns, settings)
    },
    rerun: (id, { models, format, settings }) => {
      const at = turns.findIndex((turn) => turn.id === id)
      const old = turns[at]
      if (old === undefined) return
      const columns =
        old.results.length > 0
          ? old.replies.map(({ model, column }) => ({ model, column }))
          : models.map((model, column) => ({ model, column }))
      const replies = columns.map((column) => newReply(column, settings))
      const turn = { ...old, format, replies, isEdited: false }
      setTurns(turns.map((each) => (each.id === id ? turn : each)))
      start(turn, turns.slice(0, at), settings)
    },
    edit: (id, text) =>
      setTurns(
        turns.map((turn) =>
          turn.id === id ? { ...turn, asked: { ...turn.asked, text }, isEdited: hasReply(turn) } : turn,
        ),
      ),
    remove: (id) => setTurns(turns.filter((turn) => turn.id !== id)),
    stop,
    clear: () => {
      stop()
      setTurns([])
    },
  }
}

function hasReply({ replies }: Turn): boolean {
  return replies.some(({ text, calls }) => text !== '' || calls.length > 0)
}

/** An empty draft. */
export const NOTHING: Draft = { text: '', files: [] }

function newTurn(turn: Pick<Turn, 'format' | 'asked' | 'replies'>): Turn {
  return { id: crypto.randomUUID(), results: [], isEdited: false, ...turn }
}

function newReply(
  { model, column }: Pick<Reply, 'model' | 'column'>,
  { schema }: Pick<Settings, 'schema'>,
): Reply {
  return {
    ...{ id: crypto.randomUUID(), model, column, text: '', thinking: '', calls: [] },
    ...{ isJson: schema.trim() !== '', isRunning: true, isStopped: false },
    ...{ requestId: null, ended: null, problem: null },
  }
}

function withReply(turn: Turn, id: string, edit: (reply: Reply) => Partial<Reply>): Turn {
  if (!turn.replies.some((reply) => reply.id === id)) return turn
  const replies = turn.replies.map((reply) => (reply.id === id ? { ...reply, ...edit(reply) } : reply))
  return { ...turn, replies }
}

function grown(now: Reply, { text, thinking, calls }: Fragment): Partial<Reply> {
  return {
    text: now.text + text,
    thinking: now.thinking + thinking,
    calls: calls.reduce(withPart, now.calls),
  }
}

/** A part of a call has the place of the call as its id until the provider's arrives. */
function withPart(calls: readonly ToolCall[], part: CallPart): readonly ToolCall[] {
  const { at, id = '', name = '', args = '' } = part
  const place = calls.findIndex((call) => call.at === at)
  const existing = calls[place]
  if (existing === undefined) {
    return [...calls, { at, id: id === '' ? `call_${at}` : id, name, args }]
  }
  const next = { ...existing, args: existing.args + args }
  return calls.map((call, index) => (index === place ? next : call))
}

/** Requests that ran before a reload have been stopped by it. */
function endedTurns(turns: readonly Turn[]): readonly Turn[] {
  return turns.map((turn) => ({
    ...turn,
    replies: turn.replies.map((reply) =>
      reply.isRunning ? { ...reply, isRunning: false, isStopped: true } : reply,
    ),
  }))
}
