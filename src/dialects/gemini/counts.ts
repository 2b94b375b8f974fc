/**
 * Token counts of one answer as its chunks report them: cumulative, the last value of each counts.
 * Knows no price.
 */
import type { JsonObject } from '../../chat/json.js'
import { tokenCount, type Usage } from '../../chat/usage.js'

/** The last value seen of every count. */
export class Counts {
  private prompt: number | undefined
  private toolPrompt: number | undefined
  private cached: number | undefined
  private candidates: number | undefined
  private thoughts: number | undefined
  private total: number | undefined

  /** Takes a chunk's `usageMetadata`; the new usage, or null where nothing changed. */
  update(metadata: JsonObject): Usage | null {
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
