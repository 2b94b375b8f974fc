/**
 * The turns of a conversation. Each has its own reply and failure; rerunning one does not affect the others.
 */
import { useRef, useState } from 'react'
import { chat, type Chat, type Ended } from '../api/chat.js'
import { problemOf, type Problem } from '../api/client.js'
import type { Format, FormatMessage, FormatRequest } from '../format/request-formats.js'
import { announce } from '../components/notices.js'

/** Settings of requests, besides the messages. */
export interface Settings {
  readonly system: string
  readonly temperature: string
  readonly maxTokens: string
}

/** A message and its reply. */
export interface Turn {
  readonly id: string
  readonly model: string
  readonly format: Format
  readonly asked: string
  readonly text: string
  readonly thinking: string
  /** Null until the reply is complete. */
  readonly ended: Ended | null
  /** Why the reply is missing or incomplete. */
  readonly problem: Problem | null
  /** The user stopped it. */
  readonly isStopped: boolean
  /** The message was edited after its reply. */
  readonly isEdited: boolean
}

/** The settings of a run. */
export interface Run extends Pick<Chat, 'format' | 'model'> {
  readonly settings: Settings
}

/** A conversation and its actions. */
export interface Conversation {
  readonly turns: readonly Turn[]
  /** The running turn; null: none. */
  readonly running: string | null
  readonly send: (text: string, run: Run) => void
  /** Runs one turn again, with the turns before it; later turns are unchanged. */
  readonly rerun: (id: string, run: Run) => void
  /** Changes the message of a turn without sending it. */
  readonly edit: (id: string, asked: string) => void
  readonly remove: (id: string) => void
  readonly stop: () => void
  readonly clear: () => void
}

/** The request for a message after these turns. Turns without a reply are omitted. */
export function requestOf(
  { system, temperature, maxTokens }: Settings,
  before: readonly Turn[],
  asked: string,
): FormatRequest {
  const messages: FormatMessage[] = [
    ...(system === '' ? [] : [{ role: 'system', content: system } as const]),
    ...before.flatMap((turn): FormatMessage[] =>
      turn.text === ''
        ? []
        : [
            { role: 'user', content: turn.asked },
            { role: 'assistant', content: turn.text },
          ],
    ),
    { role: 'user', content: asked },
  ]
  return {
    messages,
    temperature: temperature === '' ? undefined : Number(temperature),
    maxTokens: maxTokens === '' ? undefined : Number(maxTokens),
  }
}

/** A conversation, initially empty. */
export function useConversation(): Conversation {
  const [turns, setTurns] = useState<readonly Turn[]>([])
  const [running, setRunning] = useState<string | null>(null)
  const going = useRef<AbortController | null>(null)
  const change = (id: string, edit: (turn: Turn) => Turn): void => {
    setTurns((all) => all.map((turn) => (turn.id === id ? edit(turn) : turn)))
  }
  const run = async (turn: Turn, before: readonly Turn[], settings: Settings): Promise<void> => {
    const { id, model, format, asked } = turn
    const gone = new AbortController()
    going.current = gone
    setRunning(id)
    try {
      const request = requestOf(settings, before, asked)
      const ended = await chat({ format, model, request }, gone.signal, (fragment) =>
        change(id, (now) => ({
          ...now,
          text: now.text + fragment.text,
          thinking: now.thinking + fragment.thinking,
        })),
      )
      change(id, (now) => ({ ...now, ended }))
      announce('The reply is complete.')
    } catch (error) {
      if (gone.signal.aborted) change(id, (now) => ({ ...now, isStopped: true }))
      else change(id, (now) => ({ ...now, problem: problemOf(error) }))
    } finally {
      setRunning((now) => (now === id ? null : now))
    }
  }
  return {
    turns,
    running,
    send: (text, { settings, ...how }) => {
      const turn = newTurn(crypto.randomUUID(), text, how)
      setTurns([...turns, turn])
      void run(turn, turns, settings)
    },
    rerun: (id, { settings, ...how }) => {
      const at = turns.findIndex((turn) => turn.id === id)
      const old = turns[at]
      if (old === undefined) return
      const turn = newTurn(id, old.asked, how)
      change(id, () => turn)
      void run(turn, turns.slice(0, at), settings)
    },
    edit: (id, asked) => change(id, (turn) => ({ ...turn, asked, isEdited: turn.text !== '' })),
    remove: (id) => setTurns(turns.filter((turn) => turn.id !== id)),
    stop: () => going.current?.abort(),
    clear: () => {
      going.current?.abort()
      setTurns([])
    },
  }
}

function newTurn(id: string, asked: string, how: Pick<Chat, 'format' | 'model'>): Turn {
  return {
    ...{ id, asked, ...how },
    ...{ text: '', thinking: '', ended: null, problem: null, isStopped: false, isEdited: false },
  }
}
