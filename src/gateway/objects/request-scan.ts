/** Finds the objects that the body of a native request names. Pure. */
import { MemberScan, type MemberPlace } from '../../formats/wire/json/member-scan.js'
import { idInMember, isForeignData, mayNameObject } from './object-ids.js'

/** Ids of one request beyond this number are refused. */
const MAX_IDS = 10_000

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
  /** `model` and `endpoint` at the top, of a job that names them once for all its requests; '' for none. */
  model = ''
  endpoint = ''
  private readonly scan: MemberScan

  constructor(isLines: boolean) {
    this.scan = new MemberScan({
      isLines,
      selects: isSelected,
      skips: isForeignData,
      found: (place, value) => this.found(place, value),
    })
  }

  write(chunk: Buffer): void {
    if (this.problem !== null) return
    if (!this.scan.write(chunk)) this.problem = NOT_STRICT
  }

  end(): void {
    if (this.problem === null && !this.scan.end()) this.problem = NOT_STRICT
  }

  private found({ name, parent, depth }: MemberPlace, value: string | null): void {
    if (depth === 1 && (name === 'model' || name === 'endpoint')) {
      this[name] = value ?? ''
      return
    }
    if (value === null) {
      // A long text as `prompt` is text; no id is that long.
      if (mayNameObject(name) && !isTextMember(name)) this.problem = 'an id in the body is too long'
      return
    }
    const id = idInMember(name, parent, value)
    if (id !== null) this.ids.add(id)
    if (id !== null && INPUTS.has(name)) this.inputs.add(id)
    if (this.ids.size > MAX_IDS) this.problem = 'the body names too many objects'
    if (name === 'store' && depth === 1) this.isStored = value === 'true'
  }
}

/** Members that name the file with the requests of a batch. */
const INPUTS = new Set(['input_file_id', 'input_files', 'file_name', 'fileName'])

const NOT_STRICT = 'the body must be JSON: one complete value without comments or control characters'

function isSelected(name: string): boolean {
  return mayNameObject(name) || name === 'store' || name === 'model' || name === 'endpoint'
}

/** Members that also have other meanings with long texts. */
function isTextMember(name: string): boolean {
  return TEXTS.has(name)
}

const TEXTS = new Set([
  'audio',
  'container',
  'conversation',
  'file_id',
  'file_uri',
  'fileUri',
  'prompt',
  'uri',
])
