/**
 * How much of an answer has been seen, for when nobody says how many tokens it was.
 * Counts words' bytes and calls; knows no token.
 */
import type { ChatEvent } from '../event.js'
import type { ReplyBlock } from './fold.js'

/** What of an answer has been seen. */
export interface OutputSize {
  /** UTF-8, of text, reasoning and the names and arguments of calls. */
  readonly bytes: number
  readonly calls: number
}

/** Not a word. */
export const NO_OUTPUT: OutputSize = { bytes: 0, calls: 0 }

/** Counts while events go by. */
export class OutputMeter implements OutputSize {
  bytes = 0
  calls = 0

  add(event: ChatEvent): void {
    switch (event.type) {
      case 'text-delta':
      case 'refusal-delta':
      case 'thinking-delta':
        this.bytes += Buffer.byteLength(event.text)
        return
      case 'tool-delta':
        this.bytes += Buffer.byteLength(event.json)
        return
      case 'tool-start':
        this.calls += 1
        this.bytes += event.name.length
        return
      default:
    }
  }
}

/** The same of a whole answer. */
export function outputSizeOf(blocks: readonly ReplyBlock[]): OutputSize {
  let bytes = 0
  let calls = 0
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
      case 'refusal':
      case 'thinking':
        bytes += Buffer.byteLength(block.text)
        break
      case 'tool':
        calls += 1
        bytes += block.name.length + Buffer.byteLength(block.json)
        break
      default:
    }
  }
  return { bytes, calls }
}
