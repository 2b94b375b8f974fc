/** Reads token counts in JSON that arrives in chunks: results of a batch, events of a WebSocket. Pure. */
import { isImplausible, tokenCount, type Usage } from '../../formats/chat/usage.js'
import { MemberScan, type MemberPlace } from '../../formats/wire/json/member-scan.js'

/** The token counts of one value of the text. */
export interface ScannedUsage {
  /** The member `type` of the value; '' if it has none. */
  readonly type: string
  /** The model that it names; null if it names none. */
  readonly model: string | null
  /** Null if it has no plausible counts. */
  readonly usage: Usage | null
}

/** Levels around the counts: `response.body.usage` of OpenAI's results has the most. */
const MAX_DEPTH = 4
const PARENTS = new Set(['usage', 'usageMetadata'])
const CACHED = new Set(['cached_tokens', 'cachedContentTokenCount', 'cache_read_input_tokens'])
const REASONING = new Set(['reasoning_tokens', 'thoughtsTokenCount'])
const INPUT = new Set(['input_tokens', 'prompt_tokens', 'promptTokenCount'])
const OUTPUT = new Set(['output_tokens', 'completion_tokens', 'candidatesTokenCount', 'responseTokenCount'])
const OTHER = new Set(['cache_creation_input_tokens', 'toolUsePromptTokenCount'])
const COUNTS = new Set([...CACHED, ...REASONING, ...INPUT, ...OUTPUT, ...OTHER])

/** Scans one text: one value, or one in each line. */
export class UsageScan {
  private readonly scan: MemberScan
  private counts = new Map<string, number>()
  private model: string | null = null
  private type = ''

  constructor(isLines: boolean, onValue: (value: ScannedUsage) => void) {
    this.scan = new MemberScan({
      isLines,
      selects: (name) => COUNTS.has(name) || name === 'type' || name === 'model' || name === 'modelVersion',
      found: (place, value) => this.found(place, value ?? ''),
      ended: () => {
        onValue({ type: this.type, model: this.model, usage: this.usage() })
        this.counts = new Map()
        this.model = null
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
    } else if (name === 'model' || name === 'modelVersion') {
      if (depth <= MAX_DEPTH - 1 && value.length <= 256) this.model ??= value
    } else if (depth <= MAX_DEPTH + 1 && (PARENTS.has(parent) || parent.endsWith('_details'))) {
      const count = tokenCount(Number(value))
      if (count !== undefined) this.counts.set(name, Math.max(count, this.counts.get(name) ?? 0))
    }
  }

  private usage(): Usage | null {
    const { counts } = this
    if (counts.size === 0) return null
    const sum = (names: Iterable<string>): number => {
      let total = 0
      for (const name of names) total += counts.get(name) ?? 0
      return total
    }
    // Anthropic counts the cache beside the input, Google the thoughts beside the output.
    const besides = sum(['cache_read_input_tokens', 'cache_creation_input_tokens', 'toolUsePromptTokenCount'])
    const usage: Usage = {
      input: sum(INPUT) + besides,
      output: sum(OUTPUT) + sum(['thoughtsTokenCount']),
      cacheRead: sum(CACHED),
      cacheWrite: sum(['cache_creation_input_tokens']),
      reasoning: sum(REASONING),
    }
    return isImplausible(usage) ? null : usage
  }
}
