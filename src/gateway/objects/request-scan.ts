/**
 * What the gateway needs to know about the body of a native request: the objects that it names, and the size
 * of a batch. Pure.
 */
import { MemberScan, type MemberPlace } from '../../formats/wire/json/member-scan.js'
import { idInMember, isForeignData, mayNameObject } from './object-ids.js'

/** Ids of one request beyond this number are refused. */
const MAX_IDS = 10_000
const MAX_MODELS = 16

const OUTPUT_LIMITS = new Set([
  'max_completion_tokens',
  'max_output_tokens',
  'max_tokens',
  'maxOutputTokens',
  'max_tokens_to_sample',
])
/** Members whose contents the gateway does not see: each may fill the model's context window. */
const UNSEEN = new Set(['file_id', 'file_uri', 'file_url', 'fileUri', 'image_url', 'url'])

/** A summary of requests, as a batch contains them. */
export interface RequestSummary {
  readonly models: readonly string[]
  readonly requests: number
  readonly bytes: number
  /** The sum of the maxima of output tokens, and how many requests have one. */
  readonly output: number
  readonly withOutput: number
  /** Files and URLs whose contents the gateway does not see. */
  readonly unseen: number
}

/** Scans JSON that arrives in chunks: one value, or one in each line. */
export class RequestScan {
  /** The objects that it names, canonical. */
  readonly ids = new Set<string>()
  /** Those of them that are files with the requests of a batch. */
  readonly inputs = new Set<string>()
  /** Why the body is refused; null if it is not. */
  problem: string | null = null
  /** `store` at the top; null if the body does not set it. */
  isStored: boolean | null = null
  private readonly models = new Set<string>()
  private readonly scan: MemberScan
  private bytes = 0
  private lines = 0
  private named = 0
  private opened = 0
  private output = 0
  private withOutput = 0
  private unseen = 0

  constructor(isLines: boolean) {
    this.scan = new MemberScan({
      isLines,
      selects: isSelected,
      skips: isForeignData,
      found: (place, value) => this.found(place, value),
      opened: (name) => {
        if (name === 'contents') this.opened += 1
        else if (UNSEEN.has(name)) this.unseen += 1
      },
      ended: () => (this.lines += 1),
    })
  }

  write(chunk: Buffer): void {
    if (this.problem !== null) return
    this.bytes += chunk.length
    if (!this.scan.write(chunk)) this.problem = NOT_STRICT
  }

  end(): void {
    if (this.problem === null && !this.scan.end()) this.problem = NOT_STRICT
  }

  /** The size of the batch. */
  get summary(): RequestSummary {
    const { models, bytes, output, withOutput, unseen } = this
    const requests = Math.max(this.lines, this.named, this.opened, 1)
    return { models: [...models], requests, bytes, output, withOutput, unseen }
  }

  private found({ name, parent, depth }: MemberPlace, value: string | null): void {
    if (value === null) {
      // A long text as `prompt` is text; no id is that long.
      if (mayNameObject(name) && !isTextMember(name)) this.problem = 'an id in the body is too long'
      return
    }
    const id = idInMember(name, parent, value)
    if (id !== null) this.ids.add(id)
    if (id !== null && INPUTS.has(name)) this.inputs.add(id)
    if (this.ids.size > MAX_IDS) this.problem = 'the body names too many objects'
    // A line of a batch has the path of its endpoint as `url`.
    if (UNSEEN.has(name) && !value.startsWith('/')) this.unseen += 1
    if (name === 'model' && this.models.size < MAX_MODELS) this.models.add(value)
    if (name === 'custom_id') this.named += 1
    if (name === 'store' && depth === 1) this.isStored = value === 'true'
    if (!OUTPUT_LIMITS.has(name)) return
    const tokens = Number(value)
    if (!(tokens >= 0)) return
    this.output += tokens
    this.withOutput += 1
  }
}

/** Members that name the file with the requests of a batch. */
const INPUTS = new Set(['input_file_id', 'file_name', 'fileName'])

const NOT_STRICT = 'the body must be JSON: one complete value without comments or control characters'

function isSelected(name: string): boolean {
  return (
    mayNameObject(name) ||
    OUTPUT_LIMITS.has(name) ||
    UNSEEN.has(name) ||
    name === 'model' ||
    name === 'custom_id' ||
    name === 'store'
  )
}

/** Members that also have other meanings with long texts. */
function isTextMember(name: string): boolean {
  return name === 'prompt' || name === 'container' || name === 'conversation' || UNSEEN.has(name)
}
