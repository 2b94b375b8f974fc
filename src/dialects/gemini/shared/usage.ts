/**
 * Token counts of one answer as its chunks report them: cumulative, the last value of each counts.
 * Knows no price.
 */
import { arrayOf, type JsonObject, type JsonValue, objectOf, stringOf } from '../../../chat/json.js'
import { tokenCount, type Usage } from '../../../chat/usage.js'

/** Google's names of the tiers. */
const TIERS: ReadonlyMap<string, string> = new Map([
  ['standard', 'default'],
  ['flex', 'flex'],
  ['priority', 'priority'],
])

/** Kinds that OpenAI's format has no name for (VIDEO, DOCUMENT) are in the sums alone. */
type Kinds = Readonly<Record<'TEXT' | 'IMAGE' | 'AUDIO', keyof Usage>>

function countKinds(details: JsonValue | undefined, usage: Usage, kinds: Kinds): void {
  const counted = arrayOf(details).map(objectOf)
  if (counted.every(({ modality }) => modality === 'TEXT')) return
  for (const { modality, tokenCount: count } of counted) {
    const tokens = tokenCount(count)
    if (tokens === undefined) continue
    if (modality === 'TEXT' || modality === 'IMAGE' || modality === 'AUDIO') {
      usage[kinds[modality]] = tokens
    }
  }
}

/** The last value seen of every count. */
export class Counts {
  private prompt: number | undefined
  private toolPrompt: number | undefined
  private cached: number | undefined
  private candidates: number | undefined
  private thoughts: number | undefined
  private total: number | undefined
  private tier: string | undefined
  private promptKinds: JsonValue | undefined
  private candidateKinds: JsonValue | undefined

  /** Takes a chunk's `usageMetadata`; the new usage, or null where nothing changed. */
  update(metadata: JsonObject): Usage | null {
    this.tier = stringOf(metadata.serviceTier) ?? this.tier
    this.promptKinds = metadata.promptTokensDetails ?? this.promptKinds
    this.candidateKinds = metadata.candidatesTokensDetails ?? this.candidateKinds
    const prompt = tokenCount(metadata.promptTokenCount) ?? this.prompt
    const toolPrompt = tokenCount(metadata.toolUsePromptTokenCount) ?? this.toolPrompt
    const cached = tokenCount(metadata.cachedContentTokenCount) ?? this.cached
    const candidates = tokenCount(metadata.candidatesTokenCount) ?? this.candidates
    const thoughts = tokenCount(metadata.thoughtsTokenCount) ?? this.thoughts
    const total = tokenCount(metadata.totalTokenCount) ?? this.total
    if (
      prompt === this.prompt &&
      toolPrompt === this.toolPrompt &&
      cached === this.cached &&
      candidates === this.candidates &&
      thoughts === this.thoughts &&
      total === this.total
    ) {
      return null
    }
    this.prompt = prompt
    this.toolPrompt = toolPrompt
    this.cached = cached
    this.candidates = candidates
    this.thoughts = thoughts
    this.total = total
    return this.usage()
  }

  /** The tier that served the answer, as OpenAI names them. */
  get serviceTier(): string | undefined {
    return TIERS.get(this.tier ?? '')
  }

  /** The counts by what the tokens are; null where all are text, which says nothing new. */
  kinds(): Usage | null {
    const usage: Usage = {}
    countKinds(this.promptKinds, usage, {
      TEXT: 'inputText',
      IMAGE: 'inputImage',
      AUDIO: 'inputAudio',
    })
    countKinds(this.candidateKinds, usage, {
      TEXT: 'outputText',
      IMAGE: 'outputImage',
      AUDIO: 'outputAudio',
    })
    return Object.keys(usage).length === 0 ? null : usage
  }

  /** The upstream counted words of an answer, thoughts apart. */
  get hasOutput(): boolean {
    return (this.candidates ?? 0) > 0
  }

  private usage(): Usage {
    const usage: Usage = {}
    if (this.prompt !== undefined) usage.input = this.prompt + (this.toolPrompt ?? 0)
    if (this.candidates !== undefined || this.thoughts !== undefined) {
      usage.output = (this.candidates ?? 0) + (this.thoughts ?? 0)
    } else if (this.total !== undefined && usage.input !== undefined) {
      // Counts of zero are left out; the total says that they were counted.
      usage.output = Math.max(0, this.total - usage.input)
    }
    if (this.cached !== undefined) usage.cacheRead = this.cached
    if (this.thoughts !== undefined) usage.reasoning = this.thoughts
    return usage
  }
}
