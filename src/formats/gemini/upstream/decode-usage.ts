/** Gemini's token counts, by kind of content too, and the calls of Google's tools. */
import { addCalls, withCalls, type CallCounts } from '../../chat/hosted-tools.js'
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, stringOf } from '../../../base/json.js'
import { tokenCount, type TokenKind, type Usage } from '../../chat/usage.js'
import { UsageMeter } from '../../wire/usage-meter.js'

/** OpenAI's names of Google's service tiers. */
const TIERS: ReadonlyMap<string, string> = new Map([
  ['standard', 'default'],
  ['flex', 'flex'],
  ['priority', 'priority'],
])

/** The counts by modality. Prompt tokens of other modalities (DOCUMENT) cost as much as text. */
type Kinds = Readonly<Partial<Record<string, TokenKind>>>

const PROMPT_KINDS: Kinds = {
  TEXT: 'inputText',
  IMAGE: 'inputImage',
  AUDIO: 'inputAudio',
  VIDEO: 'inputVideo',
}
const CACHE_KINDS: Kinds = { AUDIO: 'cachedAudio', IMAGE: 'cachedImage' }
const CANDIDATE_KINDS: Kinds = { TEXT: 'outputText', IMAGE: 'outputImage', AUDIO: 'outputAudio' }

/** Adds the counts of a list; `other` is the count of modalities that are not among the kinds. */
function countKinds(details: JsonValue | undefined, usage: Usage, kinds: Kinds, other?: TokenKind): void {
  const counted = arrayOf(details).map(objectOf)
  if (counted.every(({ modality }) => modality === 'TEXT')) return
  for (const { modality, tokenCount: count } of counted) {
    const tokens = tokenCount(count)
    const isNamed = typeof modality === 'string' && modality !== 'MODALITY_UNSPECIFIED'
    const kind = isNamed ? (kinds[modality] ?? other) : undefined
    if (tokens !== undefined && kind !== undefined) usage[kind] = (usage[kind] ?? 0) + tokens
  }
}

/** Models of the first generations are billed by the prompt, later ones by the query. */
const BILLED_BY_PROMPT = /^(?:models\/)?gemini-[12]\b/

/** The calls of Google's tools of one candidate. */
function groundingCalls(metadata: JsonObject, model: string): CallCounts | undefined {
  const queries = arrayOf(metadata.webSearchQueries).length
  const sources = arrayOf(metadata.groundingChunks).map(objectOf)
  const isSearch = queries > 0 || sources.some((source) => isObject(source.web))
  const count = isSearch ? (BILLED_BY_PROMPT.test(model) ? 1 : Math.max(1, queries)) : 0
  const maps = sources.some((source) => isObject(source.maps)) ? 1 : 0
  return withCalls(withCalls(undefined, 'web_search', count), 'google_maps', maps)
}

/** The number of pictures, without those of the model's thoughts. */
function picturesIn(content: JsonValue | undefined): number {
  let count = 0
  for (const part of arrayOf(objectOf(content).parts)) {
    const { inlineData, thought } = objectOf(part)
    if (
      isObject(inlineData) &&
      thought !== true &&
      stringOf(inlineData.mimeType)?.startsWith('image/') === true
    ) {
      count += 1
    }
  }
  return count
}

/** The counts of a reply. */
export class Counts {
  /** The upstream counted output tokens other than thinking. */
  hasOutput = false
  private readonly meter = new UsageMeter()
  private tier: string | undefined
  private promptKinds: JsonValue | undefined
  private toolPromptKinds: JsonValue | undefined
  private cacheKinds: JsonValue | undefined
  private candidateKinds: JsonValue | undefined
  /** The calls of each candidate, by its index. */
  private grounding: Map<number, CallCounts> | null = null
  private pictures = 0

  /** Reads the pictures and the last sources of each candidate. Returns whether a chunk has sources. */
  ground(candidates: JsonValue | undefined, model: string): boolean {
    let isGrounded = false
    for (const candidate of arrayOf(candidates)) {
      const { groundingMetadata: metadata, index, content } = objectOf(candidate)
      this.pictures += picturesIn(content)
      if (!isObject(metadata)) continue
      const calls = groundingCalls(metadata, model)
      if (calls === undefined) continue
      this.grounding ??= new Map()
      this.grounding.set(typeof index === 'number' ? index : 0, calls)
      isGrounded = true
    }
    return isGrounded
  }

  /** The calls of Google's tools; undefined if there are none. */
  get calls(): CallCounts | undefined {
    if (this.grounding === null) return undefined
    return [...this.grounding.values()].reduce(addCalls)
  }

  /** Reads the usage of a chunk. Returns the new counts; null if nothing changed. */
  update(chunk: JsonObject): Usage | null {
    const metadata = chunk.usageMetadata ?? chunk.usage_metadata
    if (!isObject(metadata)) return null
    this.tier = stringOf(metadata.serviceTier) ?? this.tier
    this.promptKinds = metadata.promptTokensDetails ?? this.promptKinds
    this.toolPromptKinds = metadata.toolUsePromptTokensDetails ?? this.toolPromptKinds
    this.cacheKinds = metadata.cacheTokensDetails ?? this.cacheKinds
    this.candidateKinds = metadata.candidatesTokensDetails ?? this.candidateKinds
    this.hasOutput ||= (tokenCount(metadata.candidatesTokenCount) ?? 0) > 0
    return this.meter.take(metadata) ? this.meter.usage() : null
  }

  /** OpenAI's name of the service tier. */
  get serviceTier(): string | undefined {
    return TIERS.get(this.tier ?? '')
  }

  /** The counts by modality, and the pictures; null if all tokens are text. */
  kinds(): Usage | null {
    const usage: Usage = {}
    const prompts = [...arrayOf(this.promptKinds), ...arrayOf(this.toolPromptKinds)]
    countKinds(prompts, usage, PROMPT_KINDS)
    countKinds(this.cacheKinds, usage, CACHE_KINDS)
    countKinds(this.candidateKinds, usage, CANDIDATE_KINDS, 'outputOther')
    if (this.pictures > 0) usage.units = { image: this.pictures }
    return Object.keys(usage).length === 0 ? null : usage
  }
}
