/** Reads token counts in JSON that arrives in chunks: results of a batch, events of a WebSocket. Pure. */
import { isObject, numberOf, type JsonObject, type JsonValue } from '../../base/json.js'
import { isImplausible, tokenCount, type TokenKind, type Usage } from '../../formats/chat/usage.js'
import { MemberScan, type MemberPlace } from '../../formats/wire/json/member-scan.js'
import { isPricedGeo, isUsageMember, usageOf } from '../../formats/wire/usage-meter.js'

/** The token counts of one value of the text. */
export interface ScannedUsage {
  /** The member `type` of the value; '' if it has none. */
  readonly type: string
  /** The model that it names; null if it names none. */
  readonly model: string | null
  /** Null if it has no plausible counts. */
  readonly usage: Usage | null
  /** The option of Anthropic's that multiplies the price of the tokens; null for none. */
  readonly tier: string | null
}

/** Levels around the counts: `response.body.usage` of OpenAI's results has the most. */
const MAX_DEPTH = 4
const PARENTS = new Set(['usage', 'usageMetadata'])

/** Kinds of tokens by the list of Google's that counts them by modality. */
const KINDS: Readonly<Partial<Record<string, Readonly<Partial<Record<string, TokenKind>>>>>> = {
  promptTokensDetails: { AUDIO: 'inputAudio', IMAGE: 'inputImage', VIDEO: 'inputVideo' },
  cacheTokensDetails: { AUDIO: 'cachedAudio', IMAGE: 'cachedImage' },
  candidatesTokensDetails: { AUDIO: 'outputAudio', IMAGE: 'outputImage', VIDEO: 'outputOther' },
  responseTokensDetails: { AUDIO: 'outputAudio', IMAGE: 'outputImage', VIDEO: 'outputOther' },
}
const GEO = 'inference_geo'
const LISTED: ReadonlySet<string> = new Set(['modality', 'tokenCount'])

/** Scans one text: one value, or one in each line. */
export class UsageScan {
  private readonly scan: MemberScan
  /** The counts, as the members of one object that has those of its details too. */
  private counts: Record<string, JsonValue> = {}
  /** Counts of lists by modality; the last list, and the item of it that is being read. */
  private media: Usage = {}
  private list = ''
  private modality: string | null = null
  private modalityTokens: number | null = null
  private model: string | null = null
  private tier: string | null = null
  /** Advisors, whose tokens are those of another model. */
  private advised = 0
  private type = ''

  constructor(isLines: boolean, onValue: (value: ScannedUsage) => void) {
    this.scan = new MemberScan({
      isLines,
      selects: (name) =>
        isUsageMember(name) ||
        LISTED.has(name) ||
        name === 'type' ||
        name === 'model' ||
        name === GEO ||
        name === 'modelVersion',
      found: (place, value) => this.found(place, value ?? ''),
      opened: (name) => (this.list = name),
      ended: () => {
        onValue({ type: this.type, model: this.model, usage: this.usage(), tier: this.tier })
        this.counts = {}
        this.media = {}
        this.model = null
        this.tier = null
        this.advised = 0
        this.type = ''
      },
    })
  }

  /** False if the text is not JSON. */
  write(chunk: Buffer): boolean {
    return this.scan.write(chunk)
  }

  /** False if the text is incomplete. */
  end(): boolean {
    return this.scan.end()
  }

  private found({ name, parent, depth }: MemberPlace, value: string): void {
    if (name === 'type') {
      if (depth === 1) this.type = value
      else if (value === 'advisor_message') this.advised += 1
    } else if (name === 'model' || name === 'modelVersion') {
      if (depth <= MAX_DEPTH - 1 && value.length <= 256) this.model ??= value
    } else if (name === GEO) {
      if (parent === 'usage' && depth <= MAX_DEPTH && value !== 'null' && isPricedGeo(value)) this.tier = GEO
    } else if (LISTED.has(name)) {
      if (parent === '') this.item(name, value)
    } else if (depth <= MAX_DEPTH + 1) {
      if (PARENTS.has(parent)) putLargest(this.counts, name, value)
      else if (isUsageMember(parent)) {
        const details = this.counts[parent]
        if (isObject(details)) putLargest(details, name, value)
        else putLargest((this.counts[parent] = {}), name, value)
      }
    }
  }

  /** One member of an item of a list of counts by modality. */
  private item(name: string, value: string): void {
    if (name === 'modality') this.modality = value
    else this.modalityTokens = tokenCount(Number(value)) ?? null
    const { modality, modalityTokens } = this
    if (modality === null || modalityTokens === null) return
    const kind = KINDS[this.list]?.[modality]
    if (kind !== undefined) this.media[kind] = Math.max(modalityTokens, this.media[kind] ?? 0)
    this.modality = null
    this.modalityTokens = null
  }

  private usage(): Usage | null {
    const usage = { ...usageOf(this.counts), ...this.media }
    if (usage.input === undefined && usage.output === undefined) return null
    if (this.advised > 0) usage.calls = { ...usage.calls, advisor: this.advised }
    return isImplausible(usage) ? null : usage
  }
}

function putLargest(counts: JsonObject, name: string, value: string): void {
  const count = tokenCount(Number(value))
  if (count !== undefined) counts[name] = Math.max(count, numberOf(counts[name]) ?? 0)
}
