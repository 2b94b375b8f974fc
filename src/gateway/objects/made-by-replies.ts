/**
 * Records objects that a provider makes while it replies to a translated request: containers with their
 * files, sound, and responses that it stores. Reads the bytes of its reply, which pass on unchanged.
 */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import { MemberScan, type MemberPlace } from '../../formats/wire/json/member-scan.js'
import type { Target } from '../generation.js'
import { isAllowed } from '../native/native-path.js'
import type { AttemptResult, ReplyListener } from '../attempts/attempt-result.js'
import type { Call } from '../phases/call.js'
import type { OwnedObjects, Owner } from './owned-objects.js'

const KEPT_MS = 31 * 86_400_000
/** Levels around the id of a container, and of a stored response. */
const CONTAINER_DEPTH = 3
const MEMBERS = new Set(['container', 'container_id', 'file_id', 'id', 'response'])
/** Members with data that the model wrote. */
const WRITTEN = new Set(['args', 'arguments', 'metadata'])

/** Records the objects that providers make for the call; null if they make none. */
export function objectListener(call: Call, owner: Owner, objects: OwnedObjects): ReplyListener | null {
  const isStored = call.wire === 'openai-responses' && call.body['store'] !== false
  const hasContainer = usesContainer(call.body)
  const hasAudio = call.wire === 'openai-chat' && isObject(call.body['audio'])
  if (!hasContainer && !isStored && !hasAudio) return null
  const made = { hasContainer, isStored, hasAudio }
  return new MadeByReplies({ owner, objects, ...made })
}

function usesContainer({ container, tools }: JsonObject): boolean {
  if (container !== undefined && container !== null) return true
  return arrayOf(tools).some((tool) => stringOf(objectOf(tool)['type'])?.startsWith('code_') === true)
}

interface MadeByRepliesOptions {
  readonly owner: Owner
  readonly objects: OwnedObjects
  readonly hasContainer: boolean
  readonly isStored: boolean
  readonly hasAudio: boolean
}

class MadeByReplies implements ReplyListener {
  private readonly options: MadeByRepliesOptions
  private readonly scans = new Map<Target, ReplyScan>()
  private readonly recorded = new Set<string>()

  constructor(options: MadeByRepliesOptions) {
    this.options = options
  }

  bytes({ candidate: { target } }: AttemptResult, chunk: Buffer): void {
    const { native } = target.upstream.config
    if (native.sharing === 'shared') return
    const { hasContainer, isStored, hasAudio } = this.options
    // Only native access reaches a response that the provider stores.
    const isOpen = isStored && isAllowed(native.rules, 'GET', ['v1', 'responses', 'resp_'])
    if (!hasContainer && !isOpen && !hasAudio) return
    let scan = this.scans.get(target)
    if (scan === undefined) {
      scan = new ReplyScan((place, value) => this.found(place, value, { target, isOpen }))
      this.scans.set(target, scan)
    }
    scan.write(chunk)
  }

  private found(
    { name, parent, depth }: MemberPlace,
    id: string,
    { target, isOpen }: { readonly target: Target; readonly isOpen: boolean },
  ): void {
    const isContainer =
      name === 'container_id' || (name === 'id' && parent === 'container' && depth <= CONTAINER_DEPTH)
    const isResponse = isOpen && name === 'id' && id.startsWith('resp_') && depth <= 2
    const isMade = this.options.hasContainer && (isContainer || name === 'file_id')
    const isAudio = this.options.hasAudio && name === 'id' && parent === 'audio'
    if ((!isMade && !isResponse && !isAudio) || this.recorded.has(id)) return
    this.recorded.add(id)
    const { owner, objects } = this.options
    const { accountId, keyId } = owner
    const upstream = target.upstream.config.name
    const expiresAtMs = name === 'file_id' ? null : objects.nowMs() + KEPT_MS
    void objects.record([{ upstream, id, accountId, keyId, expiresAtMs, facts: '' }])
  }
}

/** Scans a whole reply, or the data of its events. */
class ReplyScan {
  private readonly found: (place: MemberPlace, value: string) => void
  private scan: MemberScan | null = null
  private isEvents: boolean | null = null
  private isInData = false

  constructor(found: (place: MemberPlace, value: string) => void) {
    this.found = found
  }

  write(chunk: Buffer): void {
    if (this.isEvents === null) {
      this.isEvents = chunk[0] !== 0x7b && chunk[0] !== 0x20 && chunk[0] !== 0x0a
      this.scan = this.isEvents ? null : this.newScan()
    }
    if (!this.isEvents) {
      // Another attempt at the upstream replies from the beginning.
      if (this.scan?.write(chunk) !== true) {
        this.scan = this.newScan()
        this.scan.write(chunk)
      }
      return
    }
    for (let at = 0; at < chunk.length;) {
      const newline = chunk.indexOf(0x0a, at)
      const end = newline < 0 ? chunk.length : newline
      this.line(chunk.subarray(at, end))
      if (newline >= 0) {
        this.isInData = false
        this.scan = null
      }
      at = end + 1
    }
  }

  /** A part of a line: JSON begins at its first brace. */
  private line(part: Buffer): void {
    const start = this.isInData ? 0 : part.indexOf(0x7b)
    if (start < 0) return
    if (!this.isInData) this.scan = this.newScan()
    this.isInData = true
    if (this.scan?.write(part.subarray(start)) === false) this.scan = null
  }

  private newScan(): MemberScan {
    return new MemberScan({
      isLines: false,
      selects: (name) => MEMBERS.has(name),
      skips: (name, _parent, isArray) => WRITTEN.has(name) || (name === 'input' && !isArray),
      found: (place, value) => {
        if (value !== null && value !== 'null' && value !== '') this.found(place, value)
      },
    })
  }
}
