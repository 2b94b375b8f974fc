/**
 * The conversation, the draft and the settings of the playground over a reload, in the storage of the tab,
 * which is emptied when the user signs out. What looks like an API key is not stored, and neither are large
 * files.
 */
import { isSignedIn } from '../../api/client.js'
import type { Draft, Settings, Turn } from './turns.js'

/** What survives a reload. */
interface Kept {
  readonly turns: readonly Turn[]
  readonly draft: Draft
  readonly settings: Settings
}

const NAME = 'sluice.playground'
const PAUSE_MS = 500
/** In characters. Browsers store about five million for an origin. */
const MAX_FILE = 700_000
const SECRET = /\b(sk|sat|slt|slr)[_-][\w-]{16,}/g

const EMPTY: Kept = {
  turns: [],
  draft: { text: '', files: [] },
  settings: { system: '', temperature: '', maxTokens: '', tools: '', schema: '' },
}

let state: (Kept & { readonly user: string }) | null = null
let timer: ReturnType<typeof setTimeout> | null = null

/** What the user had before. */
export function kept(user: string): Kept {
  if (state?.user !== user) state = { ...EMPTY, ...stored(user), user }
  return state
}

/** Stores a part soon, and at the latest when the page is left. */
export function keep(user: string, part: Partial<Kept>): void {
  state = { ...kept(user), ...part, user }
  timer ??= setTimeout(write, PAUSE_MS)
}

window.addEventListener('pagehide', write)

function stored(user: string): Partial<Kept> {
  try {
    const value = JSON.parse(window.sessionStorage.getItem(NAME) ?? '{}') as Partial<Kept & { user: string }>
    return value.user === user ? value : {}
  } catch {
    return {}
  }
}

function write(): void {
  if (timer !== null) clearTimeout(timer)
  timer = null
  if (!isSignedIn()) state = null
  if (state === null) return
  // A full storage: without any file, then without the conversation.
  for (const text of [textOf(state, MAX_FILE), textOf(state, 0), textOf({ ...state, turns: [] }, 0)]) {
    try {
      window.sessionStorage.setItem(NAME, text)
      return
    } catch {
      window.sessionStorage.removeItem(NAME)
    }
  }
}

/** JSON without keys, and with files up to a size. */
function textOf(value: object, maxFile: number): string {
  return JSON.stringify(value, (name, member: unknown) => {
    if (typeof member !== 'string') return member
    if (name === 'data') return member.length > maxFile ? null : member
    return member.replace(SECRET, '$1_…')
  })
}
